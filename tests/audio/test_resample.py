from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omni_realtime.audio import Resampler, resample

RATES = (8000, 16000, 22050, 24000, 48000)
PAIRS = list(permutations(RATES, 2))


def tone(hz, rate, seconds=1.0, level=0.5):
    return (level * np.sin(2 * np.pi * hz * np.arange(int(rate * seconds)) / rate)).astype(np.float32)


def tone_and_noise(count, rate):
    noise = np.random.default_rng(count).uniform(-0.3, 0.3, count)
    return (tone(437, rate, count / rate + 1)[:count] + noise).astype(np.float32)


def stream(resampler, samples, sizes):
    edges = np.minimum(np.cumsum([0, *sizes]), len(samples)).tolist()
    chunks = [samples[start:end] for start, end in zip(edges, [*edges[1:], len(samples)], strict=True)]
    return np.concatenate([*(resampler.process(chunk) for chunk in chunks), resampler.flush()])


def decibels(ratio):
    return 20 * np.log10(ratio)


def level_of(samples, hz, rate):
    """The amplitude of the tone ``hz`` that is in ``samples``, and of what is left without it, the edges apart."""
    inner = samples[rate // 10 : -rate // 10].astype(np.float64)
    phase = 2 * np.pi * hz * np.arange(len(inner)) / rate
    basis = np.stack([np.sin(phase), np.cos(phase)], axis=1)
    weights = np.linalg.lstsq(basis, inner, rcond=None)[0]
    return np.hypot(*weights), np.sqrt(2 * np.mean((inner - basis @ weights) ** 2))


@pytest.mark.parametrize(("rate_in", "rate_out"), PAIRS)
@settings(max_examples=15, deadline=None)
@given(count=st.integers(0, 6000), sizes=st.lists(st.integers(0, 1500), max_size=12))
def test_pitfall_streamed_equals_whole_for_any_chunk_split(rate_in, rate_out, count, sizes):
    samples = tone_and_noise(count, rate_in)
    np.testing.assert_array_equal(stream(Resampler(rate_in, rate_out), samples, sizes), resample(samples, rate_in, rate_out))


@pytest.mark.parametrize(("rate_in", "rate_out"), PAIRS)
def test_pitfall_no_rounding_drift_over_10_s_in_100_sample_chunks(rate_in, rate_out):
    samples = tone_and_noise(10 * rate_in, rate_in)
    streamed = stream(Resampler(rate_in, rate_out), samples, [100] * (len(samples) // 100))
    assert len(streamed) == 10 * rate_out
    np.testing.assert_array_equal(streamed, resample(samples, rate_in, rate_out))


@pytest.mark.parametrize(("rate_in", "rate_out"), PAIRS)
def test_a_flushed_stream_begins_afresh(rate_in, rate_out):
    samples = tone_and_noise(3000, rate_in)
    resampler = Resampler(rate_in, rate_out)
    first = stream(resampler, samples, [777, 1000])
    np.testing.assert_array_equal(stream(resampler, samples, [5]), first)


@pytest.mark.parametrize(("rate_in", "rate_out"), [(24000, 16000), (16000, 16000)])
def test_pitfall_a_resampler_given_nothing_gives_nothing(rate_in, rate_out):
    nothing = np.empty(0, np.float32)
    resampler = Resampler(rate_in, rate_out)
    assert resampler.process(nothing).tolist() == []
    assert resampler.flush().tolist() == []
    assert resampler.process(nothing).tolist() == []
    assert resampler.flush().tolist() == []
    assert resample(nothing, rate_in, rate_out).tolist() == []


def test_equal_rates_pass_through_uncopied():
    samples = tone(437, 16000)
    resampler = Resampler(16000, 16000)
    assert resampler.process(samples) is samples
    assert resampler.flush().tolist() == []
    assert resample(samples, 16000, 16000) is samples


def test_read_only_and_strided_chunks_are_as_good():
    samples = np.frombuffer(tone_and_noise(2000, 24000).tobytes(), np.float32)
    resampler = Resampler(24000, 16000)
    streamed = np.concatenate([resampler.process(samples[::2]), resampler.flush()])
    np.testing.assert_array_equal(streamed, resample(samples[::2].copy(), 24000, 16000))


@pytest.mark.parametrize(("rate_in", "rate_out"), PAIRS)
@pytest.mark.parametrize("hz_of", [lambda lower: 437, lambda lower: 0.34 * lower], ids=["437 Hz", "top of the flat band"])
def test_quality_a_tone_keeps_its_level_and_gains_nothing_audible(rate_in, rate_out, hz_of):
    hz = hz_of(min(rate_in, rate_out))
    wanted, rest = level_of(resample(tone(hz, rate_in), rate_in, rate_out), hz, rate_out)
    assert abs(decibels(wanted / 0.5)) < 0.1
    assert decibels(rest / wanted) < -100


@pytest.mark.parametrize(("rate_in", "rate_out"), [pair for pair in PAIRS if pair[0] > pair[1]])
def test_quality_what_the_lower_rate_cannot_carry_is_gone(rate_in, rate_out):
    too_high = min(0.7 * rate_out, 0.49 * rate_in)
    aliased = resample(tone(too_high, rate_in), rate_in, rate_out)[rate_out // 10 : -rate_out // 10]
    assert decibels(np.abs(aliased).max() / 0.5) < -100


@pytest.mark.parametrize("rate", [16000, 24000])
@pytest.mark.parametrize("hz", [3000, 3200, 3400])
def test_quality_telephone_speech_is_not_dulled(rate, hz):
    for rate_in, rate_out in ((8000, rate), (rate, 8000)):
        wanted, rest = level_of(resample(tone(hz, rate_in), rate_in, rate_out), hz, rate_out)
        assert abs(decibels(wanted / 0.5)) < 0.1
        assert decibels(rest / wanted) < -80


@pytest.mark.parametrize(("rate_in", "rate_out"), [(8000, 16000), (8000, 24000), (24000, 16000)])
def test_a_stream_of_user_audio_holds_back_less_than_40_ms(rate_in, rate_out):
    resampler, samples, got = Resampler(rate_in, rate_out), tone_and_noise(4 * rate_in, rate_in), 0
    for end in range(rate_in // 50, len(samples) + 1, rate_in // 50):
        got += len(resampler.process(samples[end - rate_in // 50 : end]))
        assert end / rate_in - got / rate_out < 0.04


@pytest.mark.parametrize("rates", [(0, 16000), (16000, 0), (-8000, -8000), (0, 0)])
def test_a_rate_that_is_none_is_refused(rates):
    message = f"must be positive, in Hz; got {rates[0]} and {rates[1]}"
    with pytest.raises(ValueError, match=message):
        Resampler(*rates)
    with pytest.raises(ValueError, match=message):
        resample(np.zeros(4, np.float32), *rates)


@pytest.mark.parametrize("rate_out", [16000, 24000])
@pytest.mark.parametrize("samples", [np.zeros(4), np.zeros(4, np.int16), np.zeros((4, 2), np.float32)], ids=["float64", "int16", "stereo"])
def test_what_is_not_mono_float32_is_refused_at_every_rate(samples, rate_out):
    with pytest.raises(TypeError, match="must be mono float32"):
        Resampler(24000, rate_out).process(samples)
    with pytest.raises(TypeError, match="must be mono float32"):
        resample(samples, 24000, rate_out)
