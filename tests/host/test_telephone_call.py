"""A telephone's call over a real socket: 160-byte frames of G.711 both ways."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from omni_realtime.audio import FORMATS
from omni_realtime.testing import ScriptedDetector, ScriptedTranscriber, spoken_reply, tone


@pytest.mark.parametrize("law", ["audio/pcmu", "audio/pcma"])
def test_a_call_counts_8_bytes_a_millisecond_both_ways(serve, run, law):
    wire = {"format": {"type": law}}
    session = {"audio": {"input": {**wire, "transcription": {"model": "scripted"}}, "output": wire}}
    parts = {"detector": ScriptedDetector(), "transcriber": ScriptedTranscriber("Hello?")}
    spoken = [tone(seconds, rate=8000, level=level) for seconds, level in ((1.0, 0.0), (0.8, 0.3), (1.2, 0.0))]
    frames = FORMATS[law].encode(np.concatenate(spoken))

    async def test():
        async with serve(spoken_reply("one two three", tone(1.23)), session=session, **parts) as running, running.connect() as client:
            for start in range(0, len(frames), 160):
                await client.send("input_audio_buffer.append", audio=base64.b64encode(frames[start : start + 160]).decode())
            await client.until("response.done")
            while "conversation.item.input_audio_transcription.completed" not in client.log.types():
                await client.receive()
            heard = {event["type"]: event for event in client.log.events}
            began = heard["input_audio_buffer.speech_started"]["audio_start_ms"]
            ended = heard["input_audio_buffer.speech_stopped"]["audio_end_ms"]
            assert began == pytest.approx(1000 - 300, abs=32)
            assert 2300 <= ended <= 2300 + 12 + 32, "500 ms of silence in whole frames of the detector"
            [request] = running.transcriber.requests
            assert len(request.samples) == (ended - began) * 16
            assert heard["conversation.item.input_audio_transcription.completed"]["transcript"] == "Hello?"
            deltas = [event for event in client.log.events if event["type"] == "response.output_audio.delta"]
            audio = b"".join(base64.b64decode(event["delta"]) for event in deltas)
            assert len(audio) == 1230 * 8
            for end_ms in (1230, 617, 20):
                item_id = deltas[0]["item_id"]
                await client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=end_ms)
                await client.until("conversation.item.truncated")
                await client.send("conversation.item.retrieve", item_id=item_id)
                (part,) = (await client.until("conversation.item.retrieved"))["item"]["content"]
                assert base64.b64decode(part["audio"]) == audio[: end_ms * 8]

    run(test())
