"""What a check has found: whether it is well, in which words, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple

OK, WARN, FAIL = "ok", "warn", "fail"


class Finding(NamedTuple):
    """One line of the doctor's."""

    state: str
    """`ok`; `warn` where a broker starts and something is worth a change; `fail` where it does not start or serve."""
    check: str
    """The checked object, in a word or two."""
    words: str
    """What there is."""
    advice: str = ""
    """What to do; empty where it is well."""
