"""Resampling with libsoxr, streamed and whole.

Both use soxr's LQ, made for 16-bit audio: in a stream it holds back 10 to 20 ms less than the better settings, is flat up to 0.35 of the
lower rate, 2 dB down at 0.4, and lets no alias through. Telephony's 8 kHz carry speech up to 3.4 kHz, 0.425 of the rate, and so take HQ.
Up from 8 kHz HQ holds back 115 ms by its fixed stages, which would delay the detection of turns, and 25 ms by its variable-rate filter.
"""

from __future__ import annotations

import numpy as np
import soxr

from omni_realtime.chat import Samples

NARROW_BAND = 8000
"""The rate in Hz up to which speech fills the band."""


class Resampler:
    """Resamples one stream in chunks of any size.

    What ``process`` returns for the chunks of a stream, and then ``flush``, join to exactly what :func:`resample` makes of the whole
    stream: round(n * rate_out / rate_in) samples for n. Equal rates pass every chunk through, uncopied.
    """

    def __init__(self, rate_in: int, rate_out: int) -> None:
        """Start a stream.

        Args:
            rate_in: samples a second of what comes in, in Hz.
            rate_out: samples a second of what goes out, in Hz.

        Raises:
            ValueError: if a rate is not positive.
        """
        _check_rates(rate_in, rate_out)
        quality, variable = _quality(rate_in, rate_out), _is_upward_telephony(rate_in, rate_out)
        self._stream = (
            None if rate_in == rate_out else soxr.ResampleStream(rate_in, rate_out, 1, dtype="float32", quality=quality, vr=variable)
        )

    def process(self, chunk: Samples) -> Samples:
        """Return the samples that ``chunk`` completes at the new rate; the last few milliseconds stay inside until more comes.

        Raises:
            TypeError: if ``chunk`` is not mono float32.
        """
        _check_samples(chunk)
        if self._stream is None or not len(chunk):
            return chunk
        resampled: Samples = self._stream.resample_chunk(chunk)
        return resampled

    def flush(self) -> Samples:
        """End the stream and return what was held back; the next chunk begins a fresh stream.

        To drop what is held back, flush and leave the result.
        """
        nothing = np.empty(0, np.float32)
        if self._stream is None:
            return nothing
        rest: Samples = self._stream.resample_chunk(nothing, last=True)
        self._stream.clear()
        return rest


def resample(samples: Samples, rate_in: int, rate_out: int) -> Samples:
    """Resample the whole of ``samples``, rates in Hz; ``samples`` itself, uncopied, if the rates are equal.

    Raises:
        ValueError: if a rate is not positive.
        TypeError: if ``samples`` is not mono float32.
    """
    _check_rates(rate_in, rate_out)
    _check_samples(samples)
    if rate_in == rate_out:
        return samples
    if _is_upward_telephony(rate_in, rate_out):
        stream = Resampler(rate_in, rate_out)
        return np.concatenate((stream.process(samples), stream.flush()))
    resampled: Samples = soxr.resample(samples, rate_in, rate_out, _quality(rate_in, rate_out))
    return resampled


def _quality(*rates: int) -> str:
    quality: str = soxr.HQ if min(rates) <= NARROW_BAND else soxr.LQ
    return quality


def _is_upward_telephony(rate_in: int, rate_out: int) -> bool:
    return rate_in <= NARROW_BAND < rate_out


def _check_rates(*rates: int) -> None:
    if min(rates) <= 0:
        raise ValueError(f"Sample rates must be positive, in Hz; got {rates[0]} and {rates[1]}.")


def _check_samples(samples: Samples) -> None:
    if samples.dtype != np.float32 or samples.ndim != 1:
        raise TypeError(f"Samples must be mono float32 of shape (n,); got {samples.dtype} of shape {samples.shape}.")
