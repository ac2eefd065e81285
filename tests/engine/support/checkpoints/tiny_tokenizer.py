"""A byte-level BPE tokenizer with the ids of the Qwen family and next to no merges; the base of every tiny checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE

PIECES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
"""How Qwen's tokenizers cut text before the merges."""

ROLES = {"user": 872, "system": 8948, "assistant": 77091}
"""Whole words whose ids programs depend on."""

FILLER = "~"
"""Begins the tokens that no text gives; they fill the ids between the used ones, for the library warns of holes with a megabyte of text."""

BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """What a tokenizer knows beside the bytes.

    Attributes:
        special: tokens that decoding leaves out, by id.
        plain: added tokens that decoding keeps, by id.
        words: words that are one token each; ``Ġ`` stands for the space before a word.
        fixed: ids of words that cannot be chosen freely.
        size: number of ids.
    """

    special: Mapping[int, str]
    plain: Mapping[int, str]
    words: Iterable[str]
    fixed: Mapping[str, int] = field(default_factory=dict)
    size: int

    @property
    def added(self) -> dict[int, str]:
        """The special and the plain tokens in the order of their ids."""
        return dict(sorted({**self.special, **self.plain}.items()))


def byte_symbols() -> list[str]:
    """Return the symbols of the bytes, in the order of Qwen's ids 0 to 255: GPT-2's printable bytes first."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(byte) for byte in printable] + [chr(BYTES + i) for i in range(BYTES - len(printable))]


def build_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """Make the tokenizer; every token has its id, and there are no holes."""
    ids, merges = _merged(vocabulary)
    ids |= {token: token_id for token_id, token in vocabulary.added.items()}
    ids |= {f"{FILLER}{unused:x}": unused for unused in sorted(set(range(vocabulary.size)) - set(ids.values()))}
    tokenizer = Tokenizer(BPE(vocab=ids, merges=merges, fuse_unk=False, byte_fallback=False))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PIECES), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for _, token in sorted(vocabulary.special.items())])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for _, token in sorted(vocabulary.plain.items())])
    wrong = {token: token_id for token_id, token in vocabulary.added.items() if tokenizer.token_to_id(token) != token_id}
    wrong |= {word: token_id for word, token_id in vocabulary.fixed.items() if tokenizer.encode(word).ids != [token_id]}
    if wrong:
        raise ValueError(f"tokens without their id: {wrong}")
    return tokenizer


def known_ids(tokenizer: Tokenizer) -> list[int]:
    """Return the ids of all tokens but the fillers."""
    ids = tokenizer.get_vocab(with_added_tokens=True).items()
    return sorted(token_id for token, token_id in ids if not (token.startswith(FILLER) and len(token) > 1))


def write_tokenizer(directory: Path, tokenizer: Tokenizer, config: Mapping[str, Any]) -> None:
    """Write ``tokenizer.json`` and ``tokenizer_config.json``."""
    tokenizer.save(str(directory / "tokenizer.json"), pretty=False)
    write_json(directory / "tokenizer_config.json", config)


def qwen_tokenizer_config(vocabulary: Vocabulary, **more: Any) -> dict[str, Any]:
    """Return the ``tokenizer_config.json`` of a Qwen2 tokenizer."""
    added = {
        str(token_id): {
            "content": token,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "single_word": False,
            "special": token_id in vocabulary.special,
        }
        for token_id, token in vocabulary.added.items()
    }
    return {
        "tokenizer_class": "Qwen2Tokenizer",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "bos_token": None,
        "unk_token": None,
        "add_bos_token": False,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "errors": "replace",
        "model_max_length": 8192,
        "split_special_tokens": False,
        "added_tokens_decoder": added,
        **more,
    }


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write one of a checkpoint's JSON files."""
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False), encoding="utf-8")


def _merged(vocabulary: Vocabulary) -> tuple[dict[str, int], list[tuple[str, str]]]:
    ids = {symbol: token_id for token_id, symbol in enumerate(byte_symbols())}
    merges: list[tuple[str, str]] = []
    taken = set(vocabulary.fixed.values())
    free = (token_id for token_id in count(BYTES) if token_id not in taken)
    for word in [*vocabulary.fixed, *vocabulary.words]:
        made = word[0]
        for symbol in word[1:]:
            pair, made = (made, symbol), made + symbol
            if made not in ids:
                merges.append(pair)
                ids[made] = vocabulary.fixed[made] if made in vocabulary.fixed else next(free)
    return ids, merges
