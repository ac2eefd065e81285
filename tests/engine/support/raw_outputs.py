"""Keeps what AsyncOmni itself gave for each request: the truth that the wire is compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from vllm_omni.entrypoints import async_omni

from omni_realtime.chat import Samples


@dataclass
class RawOutputs:
    """The outputs of one request."""

    modalities: tuple[str, ...] = ()
    """What was asked for, as the engine's ``output_modalities``."""
    kinds: list[str] = field(default_factory=list)
    """``text`` or ``audio`` of each output that held anything, in order."""
    text: str = ""
    audio: list[Samples] = field(default_factory=list)
    finish_reasons: list[str] = field(default_factory=list)

    @property
    def samples(self) -> Samples:
        """All audio."""
        return np.concatenate([*self.audio, np.empty(0, np.float32)])

    def add(self, output: Any) -> None:
        """Take the next output."""
        for completion in output.outputs:
            if completion.finish_reason is not None:
                self.finish_reasons.append(completion.finish_reason)
        if output.final_output_type == "audio":
            chunk = _samples((output.multimodal_output or {}).get("audio"))
            self.audio.append(chunk)
            held = len(chunk) > 0
        else:
            text = "".join(completion.text for completion in output.outputs if completion.finish_reason != "abort")
            self.text += text
            held = bool(text)
        if held:
            self.kinds.append(output.final_output_type)


class RecordingOmni(async_omni.AsyncOmni):
    """AsyncOmni that keeps its outputs by the caller's request id."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.raw: defaultdict[str, RawOutputs] = defaultdict(RawOutputs)
        super().__init__(*args, **kwargs)

    async def generate(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        raw = self.raw[kwargs["request_id"]]
        raw.modalities = tuple(kwargs.get("output_modalities") or ())
        async with aclosing(super().generate(*args, **kwargs)) as outputs:
            async for output in outputs:
                raw.add(output)
                yield output


def _samples(audio: torch.Tensor | list[torch.Tensor] | None) -> Samples:
    if audio is None:
        return np.empty(0, np.float32)
    pieces = audio if isinstance(audio, list) else [audio]
    return np.concatenate([piece.float().reshape(-1).numpy() for piece in pieces]).copy()
