"""Settings of every test: Hypothesis without deadlines, since timing is asserted nowhere."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("quick", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
