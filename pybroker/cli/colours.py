"""Colours of words on a terminal, and nowhere else.

Owns the condition: standard output is a terminal, and NO_COLOR (https://no-color.org) is not set.
"""

from __future__ import annotations

import os
import sys

_CODES = {"red": 31, "green": 32, "yellow": 33}


def paint(text: str, colour: str) -> str:
    """Return a text for output in a colour."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{_CODES[colour]}m{text}\033[0m"
