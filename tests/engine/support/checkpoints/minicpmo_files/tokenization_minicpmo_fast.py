"""The tokenizer class that a MiniCPM-o checkpoint carries as remote code; written for the tests."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedTokenizerFast

_MARKERS = {
    "im_start": "<image>",
    "im_end": "</image>",
    "slice_start": "<slice>",
    "slice_end": "</slice>",
    "im_id_start": "<image_id>",
    "im_id_end": "</image_id>",
    "audio_start": "<|audio_start|>",
    "audio_end": "<|audio_end|>",
    "spk_start": "<|spk_bos|>",
    "spk_end": "<|spk_eos|>",
    "tts_start": "<|tts_bos|>",
    "tts_end": "<|tts_eos|>",
}


class MiniCPMOTokenizerFast(PreTrainedTokenizerFast):
    """A byte-level BPE that answers to the marker names that the model's processor asks for."""

    def __getattr__(self, name: str) -> Any:
        if name in _MARKERS:
            return _MARKERS[name]
        stem = name.removesuffix("_id")
        if stem != name and stem in _MARKERS:
            return self.convert_tokens_to_ids(_MARKERS[stem])
        if name in {"bos_id", "eos_id", "unk_id"}:
            return getattr(self, f"{stem}_token_id")
        return super().__getattr__(name)
