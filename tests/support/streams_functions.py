"""The functions that a step of a streams topology names. Each exists in Java too, in `java/streams/Functions.java`.

A None is "" to most of them, and "*" to joiners. Keys and values are text; a count or a windowed key is read as text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Pair = tuple[Any, Any]


def text(value: Any) -> str:
    """Return a value as text, "" for None."""
    return "" if value is None else str(value)


def printed(value: Any) -> str:
    """Return a value as Java prints the value."""
    return "null" if value is None else str(value)


def first(value: Any) -> str:
    """Return the first character of a value, "" for None."""
    return text(value)[:1]


def _star(value: Any) -> str:
    return "*" if value is None else str(value)


PREDICATES: dict[str, Callable[[Any, Any], bool]] = {
    "value_longer_than_3": lambda key, value: len(text(value)) > 3,
    "value_length_is_even": lambda key, value: len(text(value)) % 2 == 0,
    "value_is_not_null": lambda key, value: value is not None,
    "key_is_not_null": lambda key, value: key is not None,
    "key_is_not_a": lambda key, value: text(key) != "a",
    "key_comes_after_value": lambda key, value: text(key) > text(value),
    "always": lambda key, value: True,
    "never": lambda key, value: False,
}
"""Decide on a key and a value."""

MAPPERS: dict[str, Callable[[Any, Any], Any]] = {
    "upper": lambda key, value: None if value is None else text(value).upper(),
    "append_x": lambda key, value: text(value) + "x",
    "null_if_b": lambda key, value: None if text(value).startswith("b") else value,
    "length": lambda key, value: str(len(text(value))),
    "count_as_text": lambda key, value: None if value is None else str(value),
    "key_and_value": lambda key, value: f"{text(key)}:{text(value)}",
    "value": lambda key, value: value,
    "same_key": lambda key, value: key,
    "windowed_key_as_text": lambda key, value: printed(key),
    "first_char_of_value": lambda key, value: first(value),
    "null_key_if_empty": lambda key, value: first(value) or None,
    "null_if_c": lambda key, value: None if text(value).startswith("c") else first(value),
    "last_char_of_value": lambda key, value: text(value)[-1:],
}
"""Map a key and a value to a value or to a key."""

PAIRS: dict[str, Callable[[Any, Any], Pair]] = {
    "swap": lambda key, value: (value, key),
    "key_by_first_char": lambda key, value: (first(value), value),
    "same_pair": lambda key, value: (key, value),
    "null_key_if_b": lambda key, value: (None if text(value).startswith("b") else first(value), value),
    "null_value_if_b": lambda key, value: (first(value), None if text(value).startswith("b") else value),
}
"""Map a key and a value to a key and a value."""

LISTS: dict[str, Callable[[Any, Any], list[Any]]] = {
    "twice": lambda key, value: [text(value), text(value) + "2"],
    "letters": lambda key, value: list(text(value)) or [""],
    "none": lambda key, value: [],
}
"""Map a key and a value to values."""

COMBINERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "concat_null_as_star": lambda key, one, other: f"{_star(one)}+{_star(other)}",
    "key_and_both": lambda key, one, other: f"{text(key)}:{_star(one)}+{_star(other)}",
    "null_if_same_start": lambda key, one, other: None if first(one) == first(other) else f"{text(one)}-{text(other)}",
    "append": lambda key, one, other: text(one) + text(other),
    "concat": lambda key, one, other: text(one) + text(other),
    "append_key": lambda key, one, other: text(one) + text(key),
    "append_or_null": lambda key, one, other: None if text(other).startswith("c") else text(one) + text(other),
    "remove_first": lambda key, one, other: text(one).replace(text(other), "", 1),
    "max_string": lambda key, one, other: one if text(one) >= text(other) else other,
    "second": lambda key, one, other: other,
    "first": lambda key, one, other: one,
}
"""Combine two values of a key: joiners (left, right), aggregators and reducers (aggregate, value), and mergers."""

TOPICS: dict[str, Callable[[Any, Any], str]] = {"by_length": lambda key, value: f"out-{len(text(value)) % 2}"}
"""Return the topic of a record."""


def pairs(name: str, key: Any, value: Any) -> list[Pair]:
    """Map a key and a value to keys and values."""
    return [(one if name == "letters" else key, one) for one in LISTS[name](key, value)]


def timestamp(name: str, record: Any, partition_time: int) -> int:
    """Return the timestamp that a timestamp extractor returns for a record."""
    if name == "plus_100":
        return int(record.timestamp) + 100
    if not text(record.value).startswith("b"):
        return int(record.timestamp)
    return {"negative_if_b": -1, "partition_time_if_b": partition_time}[name]
