"""What observes executions of this process, for the command line and the service: the bus."""

from __future__ import annotations

from treadle.telemetry.bus import Bus, Subscription

__all__ = ["Bus", "Subscription"]
