"""For tests of adapters, sessions and hosts: an engine and its companions that do as they are told, and a client in memory.

:mod:`omni_realtime.testing.conformance` has the tests that every adapter should pass; it needs pytest, and so is not imported here.
"""

from __future__ import annotations

from omni_realtime.testing.client import MemoryClient as MemoryClient
from omni_realtime.testing.scripted_engine import ScriptedEngine as ScriptedEngine
from omni_realtime.testing.scripted_engine import count_words as count_words
from omni_realtime.testing.scripted_speech import ScriptedDetector as ScriptedDetector
from omni_realtime.testing.scripted_speech import ScriptedTranscriber as ScriptedTranscriber
from omni_realtime.testing.scripted_speech import ScriptedTurnScorer as ScriptedTurnScorer
from omni_realtime.testing.scripted_speech import loudness as loudness
from omni_realtime.testing.scripts import Script as Script
from omni_realtime.testing.scripts import Step as Step
from omni_realtime.testing.scripts import call_reply as call_reply
from omni_realtime.testing.scripts import chunked as chunked
from omni_realtime.testing.scripts import spoken_reply as spoken_reply
from omni_realtime.testing.scripts import text_reply as text_reply
from omni_realtime.testing.scripts import tone as tone
from omni_realtime.testing.wire import check_server_event as check_server_event
