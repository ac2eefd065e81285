"""Each stage's sampling parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omni_realtime.engine.port import StageInfo
from omni_realtime_minicpmo.prompt import LEAST_TOKENS

THINKER = "llm"
"""vLLM-Omni's name for the stage that writes the text."""
SPEECH_BEGINS = 151703
"""``<|tts_bos|>``: the talker speaks what follows the last one, so a reply that ends with it is as deadly as an empty one."""
NEVER = -100.0


def fix_spoken(stages: Sequence[StageInfo], params: list[Any]) -> list[Any]:
    """Give the talker the whole text at once, and never fewer than two tokens.

    The thinker's text comes in one piece (its other stages stream): the talker begins only when the text has ended.

    Raises:
        ValueError: if no stage is the thinker, and the talker would be at risk.
    """
    thinkers = [given for stage, given in zip(stages, params, strict=True) if stage.model_stage == THINKER]
    if not thinkers:
        raise ValueError(f"no stage is called {THINKER}")
    for thinker in thinkers:
        thinker.output_kind = type(thinker.output_kind).FINAL_ONLY
        thinker.min_tokens = max(thinker.min_tokens, LEAST_TOKENS - 1)
        if thinker.max_tokens is not None:
            thinker.max_tokens = max(thinker.max_tokens, LEAST_TOKENS)
        thinker.logit_bias = {**(thinker.logit_bias or {}), SPEECH_BEGINS: NEVER}
    return params
