"""What an image costs."""

from __future__ import annotations

from functools import cache

from omni_realtime_qwen3_omni.model_files import read_model_file
from omni_realtime_qwen3_omni.settings import Qwen3OmniSettings

MAX_PIXELS = 12845056
"""To which the image processor of Qwen/Qwen3-Omni-30B-A3B-Instruct shrinks an image; counts where its configuration is not here yet."""
PATCH = 16
MERGE = 2
"""Pixels of a patch's side, and patches of a token's."""


def image_tokens(settings: Qwen3OmniSettings) -> int:
    """The most tokens of an image, by the model's ``preprocessor_config.json``."""
    return _image_tokens(settings.model, settings.revision)


@cache
def _image_tokens(model: str, revision: str) -> int:
    config = read_model_file(model, revision, "preprocessor_config.json")
    pixels = max(config.get("max_pixels") or 0, (config.get("size") or {}).get("longest_edge") or 0) or MAX_PIXELS
    side = (config.get("patch_size") or PATCH) * (config.get("merge_size") or MERGE)
    return int(pixels) // side**2
