"""Selectors: where a request names the resources that it is about.

Owns how a selector reads values from a request. A selector consists of fields of the request's classes:

    select(CreateTopicsRequest.topics, CreatableTopic.name)
    select(FindCoordinatorRequest.coordinator_keys)

`where` selects by the value of a field: of a list, the elements with this value; at the beginning, the requests.

    select(DeleteAclsRequest.filters, where(DeleteAclsFilter.operation, 2), DeleteAclsFilter.principal_filter)

Must not know what a resource is.
"""

from __future__ import annotations

from functools import cache
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.protocol.schema import fields_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.protocol.schema import FieldSpec, Struct


class Where(msgspec.Struct, frozen=True):
    """The condition that a field has a value."""

    field: MemberDescriptorType
    value: int

    def holds(self, message: Any) -> bool:
        """Return whether a request, or an element of one of its lists, has the value."""
        return bool(self.field.__get__(message) == self.value)


class Step(msgspec.Struct, frozen=True):
    """One field of a selector, and the condition behind it."""

    field: FieldSpec | None
    """None at the beginning of a selector that selects requests."""
    where: Where | None

    def follow(self, values: Sequence[Any]) -> list[Any]:
        """Return the field's values in these messages that meet the condition. A list yields its elements."""
        found = list(values)
        if self.field is not None:
            # A null struct has no fields.
            found = [getattr(value, self.field.name) for value in values if value is not None]
            if self.field.array:
                found = [item for array in found for item in array or ()]
        return found if self.where is None else [value for value in found if self.where.holds(value)]


class Selector(msgspec.Struct, frozen=True):
    """The path from a request to the names of resources, or to topic ids."""

    parts: tuple[MemberDescriptorType | Where, ...]

    @property
    def request_type(self) -> type[Struct]:
        """The class of the requests."""
        owner: type[Struct] = _field_of(self.parts[0]).__objclass__
        return owner

    @property
    def steps(self) -> tuple[Step, ...]:
        """The fields, each with the condition behind it. Raises TypeError where a field does not contain the next."""
        return _steps(self)

    def is_in(self, version: int) -> bool:
        """Return whether a version of the request has all fields of the selector."""
        return all(step.field is None or version in step.field.versions for step in self.steps)

    def follow(self, request: Struct) -> list[Any]:
        """Return the values in a request that this selector names. A null array has no values."""
        values: list[Any] = [request]
        for step in self.steps:
            values = step.follow(values)
        return values

    def __str__(self) -> str:
        """Return the names of the fields, as `resources[resource_type=2].resource_name`."""
        return ".".join(map(_shown, self.steps))


def where(field: object, value: int) -> Where:
    """Return the condition that a field of a message has a value. Raises TypeError if `field` is not a field."""
    return Where(_checked(field), value)


def select(*parts: object) -> Selector:
    """Return the selector of these fields and conditions, from the request inward.

    A field is an attribute of a message's class. Raises TypeError for a part that is not a field.
    """
    return Selector(tuple(part if isinstance(part, Where) else _checked(part) for part in parts))


def _checked(part: object) -> MemberDescriptorType:
    if not isinstance(part, MemberDescriptorType):
        raise TypeError(f"{part!r} is not a field of a message: expected an attribute of its class")
    return part


@cache
def _steps(selector: Selector) -> tuple[Step, ...]:
    """Read the declarations of the fields, at first use: this takes a third of a millisecond for each class."""
    steps: list[Step] = []
    container: type[Struct] | None = selector.request_type
    for part in selector.parts:
        field = _field_of(part)
        if field.__objclass__ is not container:
            raise TypeError(f"{field.__qualname__} is not contained in {'.'.join(map(_shown, steps))}")
        if isinstance(part, Where):
            before = steps.pop() if steps else Step(None, None)
            steps.append(Step(before.field, part))
        else:
            spec = next(spec for spec in fields_of(container) if spec.name == field.__name__)
            steps.append(Step(spec, None))
            container = spec.struct
    return tuple(steps)


def _field_of(part: MemberDescriptorType | Where) -> MemberDescriptorType:
    return part.field if isinstance(part, Where) else part


def _shown(step: Step) -> str:
    name = "" if step.field is None else step.field.name
    return name if step.where is None else f"{name}[{step.where.field.__name__}={step.where.value}]"
