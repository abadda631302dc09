"""The language in which messages and log records are declared.

Owns the declarations' parts (`Struct`, `Message`, wire types, field attributes), and reads declarations into
`FieldSpec`s. Must not know particular messages, nor their encoding. The codec compiles the `FieldSpec`s of an API at
its first message.

A declaration reads like Kafka's own schema::

    class DeleteTopicsRequest(Message, api_key=20, kind="request", versions="1-6", flexible="4+"):
        topic_names: Annotated[list[str], string, versions("0-5"), ignorable, about("The topics by name.")] = []
        timeout_ms: Annotated[int, int32, versions("0+"), about("How long to wait, in milliseconds.")] = 60000

The Python type is the type in programs (`X | None` if some version allows null, `list[X]` for an array). The other
annotations define the encoding. A field of another `Struct` needs no wire type. A declaration costs no more than a
class: annotations stay strings until `fields_of` evaluates them.
"""

from __future__ import annotations

import builtins
import sys
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    dataclass_transform,
    get_args,
    get_origin,
)

import msgspec
from msgspec import field

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ZERO_UUID",
    "FieldSpec",
    "Message",
    "MessageSpec",
    "Struct",
    "VersionRange",
    "WireType",
    "about",
    "boolean",
    "field",
    "fields_of",
    "float64",
    "ignorable",
    "int8",
    "int16",
    "int32",
    "int64",
    "map_key",
    "not_flexible",
    "nullable",
    "octets",
    "records",
    "string",
    "tag",
    "uint16",
    "uint32",
    "uuid",
    "versions",
]

ZERO_UUID = bytes(16)
"""Kafka's `Uuid.ZERO_UUID`: no topic id, no directory id."""

MAX_VERSION = 32767

Kind = Literal["request", "response", "header", "data", "metadata", "coordinator-key", "coordinator-value"]


class VersionRange(msgspec.Struct, frozen=True, gc=False):
    """Versions `first` to `last`, both included; empty when `first > last`."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> VersionRange:
        """Read Kafka's notation: "3", "1-4", "2+" or "none"."""
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), MAX_VERSION)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last version."""
        return self.first, self.last

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.first > self.last:
            return "none"
        if self.last == MAX_VERSION:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


NO_VERSIONS = VersionRange(0, -1)


class WireType(msgspec.Struct, frozen=True, gc=False):
    """A primitive type of Kafka's protocol, named as in Kafka's schemas."""

    name: str


boolean = WireType("bool")
int8 = WireType("int8")
int16 = WireType("int16")
int32 = WireType("int32")
int64 = WireType("int64")
uint16 = WireType("uint16")
uint32 = WireType("uint32")
float64 = WireType("float64")
string = WireType("string")
octets = WireType("bytes")
"""Kafka's `bytes`, named differently because `bytes` is the Python type."""
records = WireType("records")
"""Record batches, encoded as `bytes`."""
uuid = WireType("uuid")
"""A `bytes` of length 16; `ZERO_UUID` for no UUID."""


class _Versions(msgspec.Struct, frozen=True, gc=False):
    range: VersionRange


class _Nullable(msgspec.Struct, frozen=True, gc=False):
    range: VersionRange


class _Tag(msgspec.Struct, frozen=True, gc=False):
    number: int
    range: VersionRange


class _About(msgspec.Struct, frozen=True, gc=False):
    text: str


class _Mark(msgspec.Struct, frozen=True, gc=False):
    name: str


def versions(text: str) -> _Versions:
    """Declare the versions in which the field exists."""
    return _Versions(VersionRange.parse(text))


def nullable(text: str) -> _Nullable:
    """Declare the versions in which the field may be null."""
    return _Nullable(VersionRange.parse(text))


def tag(number: int, text: str) -> _Tag:
    """Declare the versions in which the field is a tagged field, and its tag."""
    return _Tag(number, VersionRange.parse(text))


def about(text: str) -> _About:
    """Describe the field in one line."""
    return _About(text)


ignorable = _Mark("ignorable")
"""In versions without the field, its value is ignored. Without this attribute, a non-default value raises an error."""
map_key = _Mark("map_key")
"""The field is (part of) the key by which Kafka's code looks up an element of the array."""
not_flexible = _Mark("not_flexible")
"""The field keeps its non-flexible encoding in flexible versions (only the client id of the request header)."""


class MessageSpec(msgspec.Struct, frozen=True, gc=False):
    """The declaration of a `Message` class, except for its fields."""

    api_key: int
    """Kafka's API key, or the record type of a log record; -1 if there is none (headers, control records)."""
    kind: Kind
    versions: VersionRange
    flexible: VersionRange

    def is_flexible(self, version: int) -> bool:
        """Return whether `version` uses compact lengths and tagged fields."""
        return self.flexible.first <= version <= self.flexible.last


class _StructMeta(msgspec.StructMeta):
    """Creates `msgspec` classes, and stores the keyword arguments of a `Message` class in `__message__`.

    Python code constructs instances by keyword, which type checkers enforce. The codec constructs them by position,
    which is several times faster.
    """

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        api_key: int = -1,
        kind: Kind | None = None,
        versions: str = "none",
        flexible: str = "none",
    ) -> _StructMeta:
        if kind is not None:
            namespace["__message__"] = MessageSpec(
                api_key, kind, VersionRange.parse(versions), VersionRange.parse(flexible)
            )
        # Messages are trees, so they have no reference cycles for the garbage collector.
        return super().__new__(mcls, name, bases, namespace, gc=False)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Struct(msgspec.Struct, metaclass=_StructMeta):
    """Base of all classes with declared fields: messages, records and the structs inside them."""


class Message(Struct):
    """Base of the structs that can be encoded by themselves: requests, responses, headers and records."""

    __message__: ClassVar[MessageSpec]


class FieldSpec(msgspec.Struct, frozen=True, gc=False):
    """The declaration of one field."""

    name: str
    type: str
    """The name of the wire type or of the struct's class, prefixed with "[]" for an array: Kafka's notation."""
    struct: builtins.type[Struct] | None
    array: bool
    versions: VersionRange
    nullable: VersionRange
    tag: int | None
    tagged: VersionRange
    default: Any
    """The default value. Lists and structs must not be shared: the constructor makes a new value each time."""
    ignorable: bool
    map_key: bool
    flexible: bool
    about: str


def fields_of(cls: type[Struct]) -> tuple[FieldSpec, ...]:
    """Return the declared fields of `cls`, in the order of their encoding.

    Raises `TypeError` with the names of the class and the field if the declaration is invalid.
    """
    namespace = vars(sys.modules[cls.__module__])
    blank = cls()
    return tuple(
        _read_field(cls, name, text, getattr(blank, name), namespace)
        for name, text in vars(cls).get("__annotations__", {}).items()
    )


def _read_field(cls: type[Struct], name: str, text: str, default: Any, namespace: Mapping[str, Any]) -> FieldSpec:
    annotation = eval(text, dict(namespace)) if isinstance(text, str) else text
    if get_origin(annotation) is not Annotated:
        raise TypeError(f"{cls.__name__}.{name}: {text} is not Annotated[...]")
    python_type, *marks = get_args(annotation)
    wire = next((mark for mark in marks if isinstance(mark, WireType)), None)
    struct, array = _shape(python_type)
    if (wire is None) == (struct is None):
        raise TypeError(f"{cls.__name__}.{name}: needs either one wire type or one Struct, has {text}")
    base = wire.name if wire is not None else struct.__name__ if struct is not None else ""
    exists = next((mark.range for mark in marks if isinstance(mark, _Versions)), None)
    if exists is None:
        raise TypeError(f"{cls.__name__}.{name}: lacks versions(...)")
    tagged = next((mark for mark in marks if isinstance(mark, _Tag)), None)
    return FieldSpec(
        name=name,
        type=f"[]{base}" if array else base,
        struct=struct,
        array=array,
        versions=exists,
        nullable=next((mark.range for mark in marks if isinstance(mark, _Nullable)), NO_VERSIONS),
        tag=None if tagged is None else tagged.number,
        tagged=NO_VERSIONS if tagged is None else tagged.range,
        default=default,
        ignorable=ignorable in marks,
        map_key=map_key in marks,
        flexible=not_flexible not in marks,
        about=next((mark.text for mark in marks if isinstance(mark, _About)), ""),
    )


def _shape(python_type: Any) -> tuple[type[Struct] | None, bool]:
    """Return the struct, if any, and whether the type is an array, for `X`, `list[X]` or either `| None`."""
    members = [member for member in get_args(python_type) if member is not type(None)]
    if get_origin(python_type) is not list and members:
        python_type = members[0]
    array = get_origin(python_type) is list
    element = get_args(python_type)[0] if array else python_type
    return (element if isinstance(element, type) and issubclass(element, Struct) else None), array
