"""Finds the value of a request that its field cannot represent, for the error message.

Called only after the codec has rejected a request. Must not know specific messages.
"""

from __future__ import annotations

from collections.abc import Iterator

from pybroker.protocol.schema import Message, Struct, fields_of

_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}


def first_misfit(message: Message) -> str | None:
    """Name the first whole number that is out of its field's range, with value and range; None where all fit."""
    return next((f"{type(message).__name__}: {text}" for text in _misfits(message, "")), None)


def _misfits(struct: Struct, path: str) -> Iterator[str]:
    for field in fields_of(type(struct)):
        value = getattr(struct, field.name)
        elements = enumerate(value or ()) if field.array else [(-1, value)]
        for index, element in elements:
            place = f"{path}{field.name}[{index}]" if field.array else f"{path}{field.name}"
            if isinstance(element, Struct):
                yield from _misfits(element, f"{place}.")
            elif isinstance(element, int):
                low, high = _RANGES.get(field.type.removeprefix("[]"), (element, element))
                if not low <= element <= high:
                    yield f"{place}: {element}: expected a whole number from {low} to {high}"
