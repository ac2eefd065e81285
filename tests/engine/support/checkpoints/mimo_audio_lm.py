"""The tiny MiMo-Audio language model, whose replies keep the model's own layout: five words, five groups of audio, five words, ...

A step makes audio only if the model itself chooses ``<|empty|>``, which random weights never would. So the attention of layers 0 to 4 is
set by hand, and gives that layout whatever the prompt is; the last word of the last block is ``<|eot|>``, and the reply ends with
``<|eostm|>``.
Which words are said, and which codes, is random, and depends on the prompt and on its audio.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

ROWS = 151680
SILENCE, START_OF_SPEECH, END_OF_SPEECH, END_OF_TEXT = 151667, 151670, 151671, 151672

HIDDEN = HEAD = 128
"""The least there can be: vLLM-Omni wants a half head of 64 for its positions, and vLLM's Qwen2 divides the hidden size by the heads."""
HEADS, FEED_FORWARD, LAYERS, THETA = 1, 64, 7, 1000.0
GROUP, CHANNELS = 4, 8
SPEECH_ROWS = [1025, 1025] + [129] * 6
LOCAL, LOCAL_HEADS, LOCAL_LAYERS, LOCAL_FEED_FORWARD, INPUT_LAYERS = 32, 2, 2, 64, 1

TEXT, START, TOKEN, ONE, GO_AUDIO, GO_END_OF_TEXT, GO_END, NOT_END_OF_TEXT, NOT_END, FREE = range(10)
"""What the first lanes of the hidden state mean; those from FREE on are random."""

Weights = dict[str, torch.Tensor]


class LookBack(NamedTuple):
    """A head that looks at the token exactly ``distance`` places back and copies one of its lanes."""

    distance: int
    lane: int
    size: float
    into: int
    gain: float


def lm_config() -> dict[str, Any]:
    """Return ``config.json``."""
    return {
        "architectures": ["MiMoAudioModel"],
        "model_type": "qwen2",
        "torch_dtype": "bfloat16",
        "transformers_version": "5.0.0",
        "vocab_size": ROWS,
        "hidden_size": HIDDEN,
        "intermediate_size": FEED_FORWARD,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "max_position_embeddings": 8192,
        "rope_theta": THETA,
        "rms_norm_eps": 1e-6,
        "attention_bias": True,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "use_cache": True,
        "bos_token_id": 151643,
        "eos_token_id": 151645,
        "pad_token_id": 151643,
        "initializer_range": 0.02,
        "speech_vocab_size": "-".join(map(str, SPEECH_ROWS)),
        "speech_zeroemb_idx": "-".join(str(rows - 1) for rows in SPEECH_ROWS),
        "delay_pattern": "0-1-2-3-4-5-6-7",
        "group_size": GROUP,
        "audio_channels": CHANNELS,
        "local_dim": LOCAL,
        "local_layers": LOCAL_LAYERS,
        "local_attn_heads": LOCAL_HEADS,
        "local_ffn_dim": LOCAL_FEED_FORWARD,
        "local_attn_dropout": 0.0,
        "input_local_layers": INPUT_LAYERS,
        "input_local_dim": LOCAL,
        "input_full_attention": True,
    }


class LanguageModel:
    """Makes the weights.

    Args:
        words: ids that a reply may say.
        known: ids that have an embedding.
        unspoken: known ids that are no words: the template's own.
        blocks: of five words and five groups of audio in a reply.
        generator: of all random numbers.
    """

    def __init__(self, *, words: list[int], known: list[int], unspoken: list[int], blocks: int, generator: torch.Generator) -> None:
        self._words = words
        self._known = known
        self._unspoken = unspoken
        self._blocks = blocks
        self._generator = generator
        self._weights: Weights = {}

    def weights(self) -> Weights:
        """Return all weights by their names in the checkpoint."""
        self._embed()
        for layer in range(LAYERS):
            self._random_layer(f"model.layers.{layer}")
        for layer, look in enumerate(self._looks()):
            self._look_back(layer, look)
        self._always_one(layer=5)
        self._weights["model.norm.weight"] = torch.ones(HIDDEN)
        self._head()
        self._local_transformers()
        self._speech()
        return {name: weight.to(torch.bfloat16).contiguous() for name, weight in self._weights.items()}

    def _random(self, *shape: int, gain: float = 1.0) -> torch.Tensor:
        return torch.randn(*shape, generator=self._generator) * gain / math.sqrt(shape[-1])

    def _embed(self) -> None:
        embedding = torch.zeros(ROWS, HIDDEN)
        embedding[:, TOKEN] = 3.0
        embedding[self._known, FREE:] = torch.randn(len(self._known), HIDDEN - FREE, generator=self._generator)
        embedding[self._known, TEXT] = 3.0
        embedding[self._unspoken, TEXT] = 0.0
        embedding[END_OF_TEXT, TEXT] = 3.0
        embedding[START_OF_SPEECH, FREE:] = 0.0
        embedding[START_OF_SPEECH, START] = 6.0
        self._weights["model.embed_tokens.weight"] = embedding

    def _qwen_layer(self, prefix: str, hidden: int, head: int, feed_forward: int, gain: float) -> None:
        heads = hidden // head
        for name in "qkv":
            self._weights[f"{prefix}.self_attn.{name}_proj.weight"] = self._random(heads * head, hidden)
            self._weights[f"{prefix}.self_attn.{name}_proj.bias"] = torch.zeros(heads * head)
        self._weights[f"{prefix}.self_attn.o_proj.weight"] = self._random(hidden, heads * head, gain=gain)
        self._weights[f"{prefix}.mlp.gate_proj.weight"] = self._random(feed_forward, hidden)
        self._weights[f"{prefix}.mlp.up_proj.weight"] = self._random(feed_forward, hidden)
        self._weights[f"{prefix}.mlp.down_proj.weight"] = self._random(hidden, feed_forward, gain=gain)
        self._weights[f"{prefix}.input_layernorm.weight"] = torch.ones(hidden)
        self._weights[f"{prefix}.post_attention_layernorm.weight"] = torch.ones(hidden)

    def _random_layer(self, prefix: str) -> None:
        """Make a random layer that reads and writes the free lanes only."""
        self._qwen_layer(prefix, HIDDEN, HEAD, FEED_FORWARD, 1.5)
        for name in ("self_attn.o_proj", "mlp.down_proj"):
            self._weights[f"{prefix}.{name}.weight"][:FREE] = 0.0
        for name in ("mlp.gate_proj", "mlp.up_proj", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"):
            self._weights[f"{prefix}.{name}.weight"][:, :FREE] = 0.0

    def _looks(self) -> list[LookBack]:
        """Return what the layers look back for.

        The next token is audio if the one five before it is a word. The two ends come a fixed number of tokens after ``<|sostm|>``, unless
        the sixth token after that was no audio: then it is a ``<|sostm|>`` of the history.
        """
        end_of_text, end = 10 * self._blocks - 6, 10 * self._blocks
        return [
            LookBack(4, TEXT, 2.9, GO_AUDIO, 4.0),
            LookBack(end_of_text, START, 10.1, GO_END_OF_TEXT, 4.0),
            LookBack(end, START, 10.1, GO_END, 4.0),
            LookBack(end_of_text - 6, TOKEN, 2.9, NOT_END_OF_TEXT, 8.0),
            LookBack(end - 6, TOKEN, 2.9, NOT_END, 8.0),
        ]

    def _look_back(self, layer: int, look: LookBack) -> None:
        """Set a layer's attention.

        The score of a key falls steadily with its distance from the place that is looked at (the taper leaves no side lobes), so that where
        the prompt does not reach back so far, the head looks at its first token.
        """
        frequencies = THETA ** (-torch.arange(HEAD // 2, dtype=torch.float64) * 2 / HEAD)
        taper = 12.0 * torch.exp(-(frequencies**2) / 4 / 0.7**2)
        angles = frequencies * look.distance
        attention = f"model.layers.{layer}.self_attn"
        for name in "qkvo":
            self._weights[f"{attention}.{name}_proj.weight"].zero_()
        self._weights[f"model.layers.{layer}.mlp.down_proj.weight"].zero_()
        self._weights[f"{attention}.q_proj.bias"] = torch.cat([taper, torch.zeros(HEAD // 2)]).float()
        self._weights[f"{attention}.k_proj.bias"] = torch.cat([angles.cos() * taper, angles.sin() * taper]).float()
        self._weights[f"{attention}.v_proj.weight"][0, look.lane] = 1.0 / look.size
        self._weights[f"{attention}.o_proj.weight"][look.into, 0] = look.gain

    def _always_one(self, layer: int) -> None:
        """Let a random layer write one lane that always is the same: the head's threshold."""
        attention = f"model.layers.{layer}.self_attn"
        self._weights[f"{attention}.v_proj.weight"][-1] = 0.0
        self._weights[f"{attention}.v_proj.bias"][-1] = 1.0
        self._weights[f"{attention}.o_proj.weight"][:, -1] = 0.0
        self._weights[f"{attention}.o_proj.weight"][ONE, -1] = 4.0

    def _head(self) -> None:
        head = torch.zeros(ROWS, HIDDEN)
        head[:, ONE] = -20.0  # never chosen, but for words and the three below
        head[self._words] = 0.0
        head[self._words, FREE:] = torch.randn(len(self._words), HIDDEN - FREE, generator=self._generator) * 0.3
        for token, lane, strength in ((SILENCE, GO_AUDIO, 60.0), (END_OF_TEXT, GO_END_OF_TEXT, 120.0), (END_OF_SPEECH, GO_END, 120.0)):
            head[token] = 0.0
            head[token, lane] = strength
            head[token, ONE] = -strength / 2
        head[END_OF_TEXT, NOT_END_OF_TEXT] = head[END_OF_SPEECH, NOT_END] = -120.0
        self._weights["lm_head.weight"] = head

    def _local_transformers(self) -> None:
        head = LOCAL // LOCAL_HEADS
        for layer in range(LOCAL_LAYERS):
            self._qwen_layer(f"local_transformer.layers.{layer}", LOCAL, head, LOCAL_FEED_FORWARD, 2.0)
        self._weights["local_transformer.norm.weight"] = torch.ones(LOCAL)
        for layer in range(INPUT_LAYERS):
            self._qwen_layer(f"input_local_transformer.layers.{layer}", LOCAL, head, 4 * LOCAL, 1.0)
        self._weights["input_local_transformer.norm.weight"] = torch.ones(LOCAL)

    def _speech(self) -> None:
        for channel, rows in enumerate(SPEECH_ROWS):
            self._weights[f"local_transformer_lm_heads.{channel}.weight"] = self._random(rows, LOCAL, gain=3.0)
            embedding = torch.randn(rows, LOCAL, generator=self._generator) * 0.5
            embedding[-1] = 0.0
            self._weights[f"speech_embeddings.{channel}.weight"] = embedding
        down = self._random(HIDDEN, LOCAL * GROUP)
        down[:FREE] = 0.0
        self._weights["speech_group_downcast.weight"] = down
        to_local = self._random(LOCAL, HIDDEN, gain=2.0)
        to_local[:, :FREE] = 0.0
        self._weights["hidden_states_downcast.weight"] = to_local
