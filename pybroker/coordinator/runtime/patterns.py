"""Regular expressions of clients, in RE2's syntax: subscribed topics, and listed transactional ids.

Owns the engine, the error messages, which are those of Kafka's engine (RE2/J), and the size limit. RE2's time only
grows with the text and the compiled pattern, whose size is limited. So no client's pattern can block the broker, or use
up its memory (docs/adr/0016).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import re2

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_CHARACTERS = 4096
"""Maximum length of a pattern."""
_MOST_BYTES = 512 << 10
"""Maximum memory of a compiled pattern with its caches."""
_REMEMBERED = 32
"""Number of compiled patterns in the cache."""
_TOO_LARGE = "pattern too large"

# RE2's error messages, and RE2/J's for the same errors; all others are equal.
_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "regexp/syntax: internal error",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": _TOO_LARGE,
}
_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # one byte of a character: RE2 has it, and RE2/J does not


class InvalidPatternError(Exception):
    """The text is no valid pattern; the message gives the reason."""


@lru_cache(maxsize=_REMEMBERED)
def matcher(pattern: str) -> Callable[[str], object]:
    """Return a function that decides whether a whole text matches; raises `InvalidPatternError`."""
    if len(pattern) > MOST_CHARACTERS:
        raise InvalidPatternError(_TOO_LARGE)
    if _ONE_BYTE.search(pattern):
        raise InvalidPatternError("invalid escape sequence")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_BYTES
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        (reported,) = error.args
        fault = (reported.decode() if isinstance(reported, bytes) else str(reported)).split(": ")[0]
        raise InvalidPatternError(_WORDS.get(fault, fault)) from None
    finally:
        re2.purge()  # Otherwise it would keep the last 128 patterns.
    # A set of one pattern only returns whether it matches, several times faster than creating a match object.
    alone = re2.Set.FullMatchSet(options)
    try:
        alone.Add(pattern)
        alone.Compile()
    except re2.error:  # A set needs more memory than a single pattern.
        raise InvalidPatternError(_TOO_LARGE) from None
    matches: Callable[[str], object] = alone.Match
    return matches
