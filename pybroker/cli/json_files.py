"""JSON that a user gives in a file, taken apart as Kafka's tools do it, with their words where it is something else.

Owns the error messages of Kafka's tools. Must not know the meaning of the values.
"""

from __future__ import annotations

import json
from typing import Any

from pybroker.cli.errors import CommandError

_INTEGER = range(-(2**31), 2**31)
_LONG = range(-(2**63), 2**63)


def as_object(value: Any) -> dict[str, Any]:
    """Return an object's fields. Raises CommandError."""
    if not isinstance(value, dict):
        raise CommandError(f"Expected JSON object, received {_text(value)}")
    return value


def as_array(value: Any) -> list[Any]:
    """Return an array's elements; raises CommandError."""
    if not isinstance(value, list):
        raise CommandError(f"Expected JSON array, received {_text(value)}")
    return value


def string_of(fields: dict[str, Any], name: str) -> str:
    """Return a field that is a text; raises CommandError."""
    value = _field(fields, name)
    if not isinstance(value, str):
        raise CommandError(f"Expected `String` value, received {_text(value)}")
    return value


def integer_of(fields: dict[str, Any], name: str) -> int:
    """Return a field that is a 32-bit integer. Raises CommandError."""
    return _number(_field(fields, name), _INTEGER, "Integer")


def long_of(fields: dict[str, Any], name: str) -> int:
    """Return a field that is a 64-bit integer. Raises CommandError."""
    return _number(_field(fields, name), _LONG, "Long")


def strings_of(fields: dict[str, Any], name: str) -> list[str]:
    """Return a field that is an array of texts; raises CommandError."""
    return [string_of({name: value}, name) for value in as_array(_field(fields, name))]


def integers_of(fields: dict[str, Any], name: str) -> list[int]:
    """Return a field that is an array of 32-bit integers. Raises CommandError."""
    return [_number(value, _INTEGER, "Integer") for value in as_array(_field(fields, name))]


def _field(fields: dict[str, Any], name: str) -> Any:
    if name not in fields:
        raise CommandError(f"No such field exists: `{name}`")
    return fields[name]


def _number(value: Any, allowed: range, kind: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
        raise CommandError(f"Expected `{kind}` value, received {_text(value)}")
    return value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
