"""Kinds of values that options of jobs have: counts, lengths of time, settings, regular expressions.

Owns how they are read, and what is said of one that cannot be. Must not know what they are for.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from pybroker.client.settings import PropertiesError, read_properties

UNITS = {"millisecond": 0.001, "second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
"""Units of time and their seconds."""


def pair(text: str) -> tuple[str, str]:
    """An option's key and value."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise wrong(f"'{text}' is no setting: give it as key=value")
    return key.strip(), value.strip()


def properties(text: str) -> dict[str, str]:
    """The settings in a file of Java's properties format, which are in no list of processes."""
    try:
        return read_properties(Path(text))
    except PropertiesError as error:
        raise wrong(str(error)) from None


def count(text: str) -> int:
    """An option's whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise wrong(f"'{text}' is no count: give a whole number from 1")
    return int(text)


def wrong(text: str) -> argparse.ArgumentTypeError:
    """What the parser reports as the fault of the option that it reads."""
    return argparse.ArgumentTypeError(text)


def duration(text: str) -> str:
    """A length of time as Spark writes it."""
    found = re.fullmatch(r"(\d+) *([a-z]+?)s?", text.strip().lower())
    if found is None or found[2] not in UNITS or int(found[1]) == 0:
        units = ", ".join(f"{unit}s" for unit in UNITS)
        raise wrong(f"'{text}' is no length of time: give a number and one of {units}")
    return f"{found[1]} {found[2]}s"


def seconds(text: str) -> float:
    """The seconds of a `duration`."""
    number, unit = text.split(" ")
    return int(number) * UNITS[unit.removesuffix("s")]


def pattern(text: str) -> str:
    """An option that is a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise wrong(f"'{text}' is no regular expression: {error}") from None
    return text
