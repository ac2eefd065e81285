"""What the codec costs beside its floor (orjson and pybase64 alone) and beside the standard library; prints ratios."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from timeit import repeat

import orjson
import pybase64

from omni_realtime.protocol import decode, encode
from omni_realtime.protocol.server_events import ResponseOutputAudioDelta

SIZES = {"20 ms": 960, "100 ms": 4800, "400 ms": 19200}


def seconds(work: Callable[[], object], calls: int = 5000) -> float:
    return min(repeat(work, number=calls, repeat=5)) / calls


def main() -> None:
    for name, size in SIZES.items():
        audio = bytes(index % 251 for index in range(size))
        frame = orjson.dumps({"type": "input_audio_buffer.append", "audio": pybase64.b64encode_as_string(audio)}).decode()
        event = ResponseOutputAudioDelta(
            event_id="event_0123456789",
            response_id="resp_0123456789",
            item_id="item_0123456789",
            output_index=0,
            content_index=0,
            delta=audio,
        )
        wire = orjson.loads(encode(event))

        decoded = seconds(lambda frame=frame: decode(frame))
        floor = seconds(lambda frame=frame: pybase64.b64decode(orjson.loads(frame)["audio"], validate=True))
        plain = seconds(lambda frame=frame: base64.b64decode(json.loads(frame)["audio"]))
        print(f"append, {name}: {decoded / floor:.2f} x the floor; the standard library takes {plain / decoded:.1f} x as long")

        encoded = seconds(lambda event=event: encode(event))
        floor = seconds(lambda audio=audio, wire=wire: orjson.dumps({**wire, "delta": pybase64.b64encode_as_string(audio)}).decode())
        plain = seconds(lambda audio=audio, wire=wire: json.dumps({**wire, "delta": base64.b64encode(audio).decode()}))
        print(f"audio delta, {name}: {encoded / floor:.2f} x the floor; the standard library takes {plain / encoded:.1f} x as long")

    script = "from time import perf_counter as t; s = t(); import omni_realtime.protocol; print(t() - s)"
    runs = [float(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout) for _ in range(5)]
    print(f"import of the codec: {min(runs):.3f} s")


if __name__ == "__main__":
    main()
