"""Which requests a router should send to one server."""

from __future__ import annotations

import hashlib

from omni_realtime.chat import ChatPrompt, TextPart

HEADER = "X-Session-ID"
"""By which vllm-router's policies ``sticky_least_loaded`` and ``consistent_hash`` know a conversation; other servers ignore it."""


def conversation_key(prompt: ChatPrompt) -> str:
    """Name the beginning of a prompt.

    It stays the same from turn to turn as long as what a server has cached of the turn before (the prefix, and what it made of the audio)
    is of use, and changes when truncation drops that beginning.
    """
    digest = hashlib.blake2b(digest_size=16)
    first = next((message for message in prompt.messages if message.role != "system"), None)
    for part in first.content if first else ():
        digest.update((part.text if isinstance(part, TextPart) else part.key).encode() + b"\0")
    return digest.hexdigest()
