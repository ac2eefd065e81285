"""The configuration class that a MiniCPM-o checkpoint carries as remote code; written for the tests."""

from __future__ import annotations

from typing import Any

from transformers import PretrainedConfig, Qwen3Config, SiglipVisionConfig, WhisperConfig


class MiniCPMVSliceConfig(PretrainedConfig):
    """How images are cut."""

    model_type = "minicpmv"

    def __init__(self, patch_size: int = 14, max_slice_nums: int = 9, scale_resolution: int = 448, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.patch_size = patch_size
        self.max_slice_nums = max_slice_nums
        self.scale_resolution = scale_resolution


class MiniCPMTTSConfig(PretrainedConfig):
    """The talker."""

    model_type = "minicpmtts"


class MiniCPMOConfig(Qwen3Config):
    """The whole model: a Qwen3 with ears, eyes and a voice."""

    model_type = "minicpmo"

    def __init__(
        self, slice_config: Any = None, vision_config: Any = None, audio_config: Any = None, tts_config: Any = None, **kwargs: Any
    ) -> None:
        self.slice_config = _config(MiniCPMVSliceConfig, slice_config)
        self.vision_config = _config(SiglipVisionConfig, vision_config)
        self.audio_config = _config(WhisperConfig, audio_config)
        self.tts_config = _config(MiniCPMTTSConfig, tts_config)
        super().__init__(**kwargs)


def _config(kind: type[PretrainedConfig], value: Any) -> PretrainedConfig:
    return value if isinstance(value, PretrainedConfig) else kind(**(value or {}))
