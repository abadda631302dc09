"""Patterns of clients, in RE2's syntax: topics that members subscribe to, transactional ids that are listed.

Owns the engine, the words for what is wrong with a pattern, which are those of Kafka's engine (RE2/J), and how large
one may be. RE2 takes time that grows with the text and the pattern's program alone, and the program is bounded, so no
pattern of a client can hold up the broker, or fill it (docs/adr/0016).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import re2

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_CHARACTERS = 4096
"""Of a pattern."""
_MOST_BYTES = 512 << 10
"""Of what a pattern is compiled to, and of what is remembered of the texts it was held against."""
_REMEMBERED = 32
"""Patterns that stay compiled."""
_TOO_LARGE = "pattern too large"

# What RE2 says, and RE2/J for the same; the rest is the same in both.
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
    """The text is no pattern; says what is wrong with it."""


@lru_cache(maxsize=_REMEMBERED)
def matcher(pattern: str) -> Callable[[str], object]:
    """Return what says whether a whole text matches; raises `InvalidPatternError` for a text that is no pattern."""
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
        (said,) = error.args
        fault = (said.decode() if isinstance(said, bytes) else str(said)).split(": ")[0]
        raise InvalidPatternError(_WORDS.get(fault, fault)) from None
    finally:
        re2.purge()  # It would keep the last 128 by itself.
    # A set of one says yes or no, several times faster than a match object is made.
    alone = re2.Set.FullMatchSet(options)
    try:
        alone.Add(pattern)
        alone.Compile()
    except re2.error:  # A set needs more room than the pattern by itself.
        raise InvalidPatternError(_TOO_LARGE) from None
    matches: Callable[[str], object] = alone.Match
    return matches
