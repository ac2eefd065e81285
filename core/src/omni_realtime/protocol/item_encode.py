"""Conversation items as clients get them: absent keys are left out, never null."""

from __future__ import annotations

from typing import Any

import pybase64

from omni_realtime.protocol.image_data import image_url
from omni_realtime.protocol.items import Content, FunctionCall, FunctionCallOutput, InputAudio, InputImage, InputText, Item, OutputText


def item_to_wire(item: Item, *, audio: bool = False) -> dict[str, Any]:
    """Return the API's item with the images that it holds.

    Audio data goes with it only where ``audio`` asks for it, as in ``conversation.item.retrieved``.
    """
    wire: dict[str, Any] = {"id": item.id} if item.id else {}
    wire |= {"object": "realtime.item", "status": item.status}
    match item:
        case FunctionCall():
            return wire | {"type": "function_call", "name": item.name, "call_id": item.call_id, "arguments": item.arguments}
        case FunctionCallOutput():
            return wire | {"type": "function_call_output", "call_id": item.call_id, "output": item.output}
    return wire | {"type": "message", "role": item.role, "content": [_content_to_wire(part, audio=audio) for part in item.content]}


def _content_to_wire(part: Content, *, audio: bool) -> dict[str, Any]:
    match part:
        case InputText():
            return {"type": "input_text", "text": part.text}
        case OutputText():
            return {"type": "output_text", "text": part.text}
        case InputImage():
            url = {} if part.image is None else {"image_url": image_url(part.image, part.media_type)}
            return {"type": "input_image", **url, "detail": part.detail}
    # Clients demand the transcript of user audio, null while it is unknown.
    wire: dict[str, Any] = {"type": "input_audio" if isinstance(part, InputAudio) else "output_audio", "transcript": part.transcript}
    if audio and part.audio is not None:
        wire["audio"] = pybase64.b64encode_as_string(part.audio)
    return wire
