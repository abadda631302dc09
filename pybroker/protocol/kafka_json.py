"""Messages as the JSON of Kafka's tools, as its generated `*JsonConverter` classes write it, for any declaration.

Owns Kafka's field names and the JSON form of each type: ids and bytes in base64, a tagged field only if it differs from
its default. Must not know any particular message.
"""

from __future__ import annotations

import base64
import json
import math
import re
from functools import cache
from typing import Any

from pybroker.protocol.schema import FieldSpec, Message, Struct, fields_of

Json = dict[str, Any]


def json_of(message: Message, version: int) -> Json:
    """Return the fields of the message in `version`, in the order of its schema."""
    return _struct(message, version)


def json_text(value: object) -> str:
    """Format JSON as Jackson does: without spaces, unescaped Unicode, numbers as in Java."""
    if isinstance(value, dict):
        return f"{{{','.join(f'{json_text(name)}:{json_text(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, list):
        return f"[{','.join(map(json_text, value))}]"
    if isinstance(value, float):
        return java_double(value)
    return json.dumps(value, ensure_ascii=False)


def id_text(uuid: bytes) -> str:
    """Format a Kafka `Uuid`: URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def _struct(struct: Struct, version: int) -> Json:
    written = {}
    for field, name, default in _named_fields(type(struct)):
        value = getattr(struct, field.name)
        if version in field.tagged and value == default:
            continue
        if version in field.versions or version in field.tagged:
            written[name] = _value(field, value, version)
    return written


@cache
def _named_fields(cls: type[Struct]) -> tuple[tuple[FieldSpec, str, Any], ...]:
    blank = cls()
    return tuple((field, kafka_name(field.name), getattr(blank, field.name)) for field in fields_of(cls))


def kafka_name(name: str) -> str:
    """Return the camel-case name: `topicId` for `topic_id`."""
    # Kafka spells it KRaft, which becomes kRaft in camel case.
    name = name.replace("kraft_", "k_raft_")
    return re.sub(r"_(\w)", lambda letter: letter[1].upper(), name)


def _value(field: FieldSpec, value: Any, version: int) -> Any:
    if value is None:
        return None
    if field.array:
        return [_element(field, element, version) for element in value]
    return _element(field, value, version)


def _element(field: FieldSpec, value: Any, version: int) -> Any:
    if field.struct is not None:
        return _struct(value, version)
    kind = field.type.removeprefix("[]")
    if kind == "uuid":
        return id_text(value)
    if kind in ("bytes", "records"):
        return base64.b64encode(value).decode()
    return value


def java_double(value: float) -> str:
    """Format a number as Java's `Double.toString`: in scientific notation outside [1e-3, 1e7)."""
    if value == 0 or 1e-3 <= abs(value) < 1e7 or not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(repr(value), repr(value))
    shortest = next(text for text in (f"{value:.{digits}e}" for digits in range(1, 18)) if float(text) == value)
    mantissa, _, exponent = shortest.partition("e")
    return f"{mantissa}E{int(exponent)}"
