"""The result of a check: its state, its description, and the fix."""

from __future__ import annotations

from typing import NamedTuple

OK, WARN, FAIL = "ok", "warn", "fail"


class Finding(NamedTuple):
    """One line of the output."""

    state: str
    """`ok`; `warn` where a broker starts but a change is advisable; `fail` where it does not start or serve."""
    check: str
    """The checked object, in one or two words."""
    words: str
    """The observed state."""
    advice: str = ""
    """The fix; empty without a problem."""
