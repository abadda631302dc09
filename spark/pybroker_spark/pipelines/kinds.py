"""Types of job options: counts, durations, settings, regular expressions.

Owns their parsing and the error messages. Must not know the use of an option.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from pybroker.client.settings import PropertiesError, read_properties

UNITS = {"millisecond": 0.001, "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
"""Units of time and their seconds."""


def pair(text: str) -> tuple[str, str]:
    """Parse key and value of an option."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise wrong(f"'{text}' is no setting: give it as key=value")
    return key.strip(), value.strip()


def properties(text: str) -> dict[str, str]:
    """Read the settings in a Java properties file, which keeps secrets off the command line."""
    try:
        return read_properties(Path(text))
    except PropertiesError as error:
        raise wrong(str(error)) from None


def count(text: str) -> int:
    """Parse an integer from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise wrong(f"'{text}' is no count: give a whole number from 1")
    return int(text)


def wrong(text: str) -> argparse.ArgumentTypeError:
    """Return the exception by which the parser reports an invalid option."""
    return argparse.ArgumentTypeError(text)


def duration(text: str) -> str:
    """Parse a duration, in Spark's notation."""
    found = re.fullmatch(r"(\d+) *([a-z]+?)s?", text.strip().lower())
    if found is None or found[2] not in UNITS or int(found[1]) == 0:
        units = ", ".join(f"{unit}s" for unit in UNITS)
        raise wrong(f"'{text}' is no length of time: give a number and one of {units}")
    return f"{found[1]} {found[2]}s"


def seconds(text: str) -> float:
    """Return the seconds of a `duration`."""
    number, unit = text.split(" ")
    return int(number) * UNITS[unit.removesuffix("s")]


def pattern(text: str) -> str:
    """Parse a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise wrong(f"'{text}' is no regular expression: {error}") from None
    return text
