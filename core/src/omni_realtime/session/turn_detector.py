"""Server VAD as pure logic over speech probabilities; the neural detector that makes them is the host's business."""

from __future__ import annotations

from typing import Literal

from omni_realtime.protocol import ServerVad

HYSTERESIS = 0.15
"""Speech goes on until the probability falls this far below the threshold, as Silero's own iterator does it."""
SURE_SILENCE = 0.01
"""A probability below this is silence, however low the threshold."""


class TurnDetector:
    """Follows one stream of frames from silence to speech and back.

    Attributes:
        speaking: whether speech has begun and not ended.
        silence_ms: how long the speaker has paused.
    """

    def __init__(self, frame_ms: float) -> None:
        """Start in silence; ``frame_ms`` is the length of a frame."""
        self._frame_ms = frame_ms
        self.silence_ms = 0.0
        self.speaking = False

    def feed(self, probability: float, vad: ServerVad) -> Literal["started", "stopped"] | None:
        """Take the next frame's speech probability, and say what it changes.

        ``started`` means that speech began with this frame, ``stopped`` that the silence window ended with it.
        """
        speech = probability >= vad.threshold  # never for NaN
        if not self.speaking:
            if not speech:
                return None
            self.speaking = True
            self.silence_ms = 0.0
            return "started"
        if speech:
            self.silence_ms = 0.0
        elif not probability >= max(vad.threshold - HYSTERESIS, SURE_SILENCE) or self.silence_ms:
            self.silence_ms += self._frame_ms
        if self.silence_ms < max(vad.silence_duration_ms, self._frame_ms):
            return None
        self.speaking = False
        return "stopped"

    def stop(self) -> None:
        """End the speech before its silence window does."""
        self.speaking = False
