"""``python -m omni_realtime_host`` is ``omni-realtime``."""

from __future__ import annotations

import sys

from omni_realtime_host.cli import main

sys.exit(main())
