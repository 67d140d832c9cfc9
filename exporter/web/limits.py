"""A token bucket, as exporter-toolkit's ``rate_limit`` means it."""

from __future__ import annotations

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


def go_duration(text: str) -> float:
    """Return the seconds of a duration as Go writes it: ``1m30s``, ``250ms``, ``0``. Raises :class:`ValueError`."""
    if text == "0":
        return 0.0
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is no duration")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


class TokenBucket:
    """Lets ``burst`` requests through at once and one more every ``interval`` seconds. Time is given, in seconds."""

    def __init__(self, interval: float, burst: int, now: float) -> None:
        self._interval, self._burst = interval, burst
        self._tokens, self._then = float(burst), now

    def take(self, now: float) -> bool:
        """Return whether a request that comes now may pass."""
        self._tokens = min(self._burst, self._tokens + (now - self._then) / self._interval)
        self._then = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
