"""Encode and decode messages by the schemas that Rust compiles from their declarations.

Owns the compiled schemas, one per `Message` class, made at its first use. Must not know any particular API.
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
    """Encode `message` in a version of its API.

    Raises `UnsupportedVersion` if the version is not declared or lacks a field with a non-default value, and
    `UnencodableValue` if a value does not fit its wire type.
    """
    cls = type(message)
    return (_schemas.get(cls) or _compile(cls)).encode(message, version)


def encode_element(cls: type[Message], element: Struct, version: int) -> bytes:
    """Encode one element of an array field of `cls`.

    `encode` accepts the bytes in place of the element, in messages of the same version. Raises what `encode` raises.
    """
    return schema_of(cls).encode_element(element, version)


def decode(cls: type[T], buffer: bytes | memoryview, version: int, offset: int = 0) -> tuple[T, int]:
    """Decode a `cls` of `version` that starts at `offset`. Return the message and its size in bytes.

    Bytes after the message are ignored. Raises `MalformedMessage`, and `UnsupportedVersion` for a version that is not
    declared.
    """
    return (_schemas.get(cls) or _compile(cls)).decode(buffer, version, offset)  # type: ignore[return-value]


def schema_of(cls: type[Message]) -> Schema:
    """Return the compiled schema, for callers that encode or decode many messages at once."""
    return _schemas.get(cls) or _compile(cls)


def _compile(cls: type[Message]) -> Schema:
    structs = {struct: fields_of(struct) for struct in _inside_out(cls)}
    places = {struct: place for place, struct in enumerate(structs)}
    table = [(struct, [_row(field, places) for field in fields]) for struct, fields in structs.items()]
    spec = cls.__message__
    schema = _schemas[cls] = Schema(cls.__name__, table, spec.versions.bounds, spec.flexible.bounds)
    return schema


def _inside_out(cls: type[Struct]) -> Iterator[type[Struct]]:
    """Yield the structs of `cls`, inner structs first and `cls` last, possibly with repetitions."""
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
