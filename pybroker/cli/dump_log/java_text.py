"""Bytes as text where they are not UTF-8, as Java shows them.

Owns the one difference between the replacement of malformed bytes in Java and Python: a surrogate that was encoded
alone, complete or cut, is one replacement character in Java.
"""

from __future__ import annotations

import re

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_MALFORMED = b"\xff"


def java_text(raw: bytes) -> str:
    """Return the result of `new String(raw, UTF_8)`."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_MALFORMED, raw).decode(errors="replace")
