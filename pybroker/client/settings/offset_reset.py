"""`auto.offset.reset`: the position without a committed offset, and ISO 8601 durations in Java's syntax (KIP-1106)."""

from __future__ import annotations

import re

from pybroker.client.errors import SettingError
from pybroker.config.key import Key, Kind

_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_BY_DURATION = "by_duration"


def offset_reset() -> Key[str]:
    """Declare the key."""
    return Key(
        Kind.STRING,
        "latest",
        "The start of a partition without a committed offset, or with an offset out of range: `earliest`, `latest`, "
        "`none` (an error), or `by_duration:` with an ISO 8601 duration before now (KIP-1106).",
        parse=str,
        check=_is_reset,
        expected="earliest, latest, none, or by_duration: and a duration like PT1H30M that is not negative",
    )


def reset_duration_ms(text: str) -> int | None:
    """Return the duration of a reset `by_duration` in ms; None for other resets.

    Raises SettingError for an invalid one.
    """
    kind, _, duration = text.partition(":")
    return parse_duration_ms(duration) if kind == _BY_DURATION else None


def parse_duration_ms(text: str) -> int:
    """Parse an ISO 8601 duration as Java's Duration does (`P2DT3H`, `PT1.5S`). Raises SettingError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groupdict().values()) or text.strip().endswith("T"):
        raise SettingError(f"{text!r} is not a duration: expected the form P1DT2H3M4S")
    days, hours, minutes, seconds = (float(found[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    milliseconds = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    if not abs(milliseconds) < 2**63:
        raise SettingError(f"{text!r} is not a duration: longer than {2**63 - 1} ms")
    return round(milliseconds) * (-1 if found["sign"] == "-" else 1)


def _is_reset(text: str) -> bool:
    if text in ("earliest", "latest", "none"):
        return True
    try:
        back_ms = reset_duration_ms(text)
    except SettingError:
        return False
    return back_ms is not None and back_ms >= 0
