"""The local adapter keeps what every adapter must."""

from __future__ import annotations

from omni_realtime.deployment import Deployment
from omni_realtime.testing.conformance import AdapterConformance


class TestLocalAdapter(AdapterConformance):
    deployment = Deployment(name="local-smollm2-135m", plugin="local")
