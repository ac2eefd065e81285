"""A Realtime adapter for a model that this project does not ship: Qwen2-Audio hears and reads, and writes, on vLLM.

pip install ./examples/third_party_adapter
omni-realtime serve examples/third_party_adapter/qwen2-audio.yaml
"""

from __future__ import annotations

from omni_realtime.deployment import Deployment
from omni_realtime.hookspecs import ResampleRates, hookimpl
from omni_realtime.protocol import Capabilities

OMNI_REALTIME_API = 1


@hookimpl
def realtime_capabilities(deployment: Deployment) -> Capabilities:
    """Speech and text in, text out; a second of audio is 25 tokens."""
    return Capabilities(audio_input=True, output_modalities=("text",), audio_tokens_per_second=25)


@hookimpl
def realtime_resample_rates(deployment: Deployment) -> ResampleRates:
    """Whisper's rate in; no audio comes out."""
    return ResampleRates(input=16000, output=16000)
