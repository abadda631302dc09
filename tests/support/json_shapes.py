"""Checks that a JSON document has the shape that a command declares in its constant `JSON`."""

from __future__ import annotations

from typing import Any

TYPES = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}


def shape_fault(value: Any, shape: Any, where: str = "$") -> str | None:
    """Return the path and reason of the first mismatch of a value and its shape, or None."""
    if isinstance(shape, str):
        fits = any(TYPES[name](value) for name in shape.split("|"))
        return None if fits else f"{where}: {value!r} is no {shape}"
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where}: {value!r} is no list"
        faults = (shape_fault(item, shape[0], f"{where}[{number}]") for number, item in enumerate(value))
        return next((fault for fault in faults if fault), None)
    if not isinstance(value, dict):
        return f"{where}: {value!r} is no object"
    (any_key,) = [key for key in shape if key.startswith("<")] or [None]
    if any_key is None and value.keys() != shape.keys():
        return f"{where}: the keys are {sorted(value)}, not {sorted(shape)}"
    faults = (shape_fault(item, shape[any_key or key], f"{where}.{key}") for key, item in value.items())
    return next((fault for fault in faults if fault), None)
