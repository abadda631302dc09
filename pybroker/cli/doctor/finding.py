"""What a check has found: whether it is well, in which words, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

OK, WARN, FAIL = "ok", "warn", "fail"


class Finding(NamedTuple):
    """One line of the output."""

    state: str
    """`ok`; `warn` where a broker starts but a change is advisable; `fail` where it does not start or serve."""
    check: str
    """The checked object, in a word or two."""
    words: str
    """The observed state."""
    advice: str = ""
    """The fix; empty without a problem."""
