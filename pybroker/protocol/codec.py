"""From messages to bytes and back, by the table that Rust compiles a declaration to.

Owns the compiled schemas of the classes met so far, one per `Message` class, made at its first use. Knows no API by
name. The second step of a request's way in Python, and the one before last of its response's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pybroker.protocol.native import Schema
from pybroker.protocol.schema import FieldSpec, Message, Struct, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybroker.protocol.native import FieldRow

T = TypeVar("T", bound=Message)

_schemas: dict[type[Message], Schema] = {}


def encode(message: Message, version: int) -> bytes:
    """Encode `message` as `version` of its API writes it.

    Raises `UnsupportedVersion` when the version is not declared, or cannot carry a value that a field holds, and
    `UnencodableValue` when a value does not fit its wire type.
    """
    cls = type(message)
    return (_schemas.get(cls) or _compile(cls)).encode(message, version)


def encode_element(cls: type[Message], element: Struct, version: int) -> bytes:
    """Encode an element of an array of a `cls`, as it stands in the array.

    The array takes the bytes in place of the element, in messages of the same version. Raises as `encode`.
    """
    return schema_of(cls).encode_element(element, version)


def decode(cls: type[T], buffer: bytes | memoryview, version: int, offset: int = 0) -> tuple[T, int]:
    """Decode a `cls` of `version` that starts at `offset`: (message, bytes read).

    Bytes after the message are left alone. Raises `MalformedMessage`, and `UnsupportedVersion` for a version that is
    not declared.
    """
    return (_schemas.get(cls) or _compile(cls)).decode(buffer, version, offset)  # type: ignore[return-value]


def schema_of(cls: type[Message]) -> Schema:
    """Return the compiled schema, for those who code many messages at once."""
    return _schemas.get(cls) or _compile(cls)


def _compile(cls: type[Message]) -> Schema:
    structs = {struct: fields_of(struct) for struct in _inside_out(cls)}
    places = {struct: place for place, struct in enumerate(structs)}
    table = [(struct, [_row(field, places) for field in fields]) for struct, fields in structs.items()]
    spec = cls.__message__
    schema = _schemas[cls] = Schema(cls.__name__, table, spec.versions.bounds, spec.flexible.bounds)
    return schema


def _inside_out(cls: type[Struct]) -> Iterator[type[Struct]]:
    """Walk the structs below `cls`, each after those that it holds, `cls` last; some come more than once."""
    for field in fields_of(cls):
        if field.struct is not None:
            yield from _inside_out(field.struct)
    yield cls


def _row(field: FieldSpec, places: dict[type[Struct], int]) -> FieldRow:
    return (
        field.name,
        field.type.removeprefix("[]") if field.struct is None else places[field.struct],
        field.array,
        field.versions.bounds,
        field.nullable.bounds,
        field.tag or 0,
        field.tagged.bounds,
        field.default,
        field.ignorable,
        field.flexible,
    )
