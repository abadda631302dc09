"""What an API requires: operations on resources, declared by its handler, and the resources that one request names.

Owns the form of such a declaration and the paths by which it finds resources in a request. An authorizer is given both;
`authorizer` is the one place that decides. Must not know any API.

A path names fields from the request inward: `topics.name` is the name of each element of `topics`. A field in brackets
chooses: `resources[resource_type=2].resource_name` are the names of those whose type is 2, and `[key_type=0].key` is
the key of a request of that type. A version that lacks a field of a path does not have that path.

Source: Kafka's table "Operations and Resources on Protocols", and where it differs from what runs, KafkaApis.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pybroker.protocol.schema import ZERO_UUID, fields_of
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pybroker.protocol.schema import FieldSpec, Struct


class Scope(Enum):
    """What is refused to a principal that lacks the right."""

    REQUEST = "the whole request"
    ITEM = "an item of the request"
    ANSWER = "what the answer names"


class Requirement(msgspec.Struct, frozen=True):
    """An operation that a request needs on resources of one type."""

    scope: Scope
    operation: Operation
    resource_type: ResourceType
    fields: tuple[str, ...] = ()
    """Paths to the names of the resources, or to topic ids. The cluster has one name, so that a path to it only says
    which requests or items need it; without a path all do."""
    unless: Operation | None = None
    """An operation on the cluster that allows the same for all resources."""
    when: str | None = None
    """When it is needed, where that is not to be seen in the request alone: its handler has to ask."""


class NothingRequired(msgspec.Struct, frozen=True):
    """What an API declares that is answered to everybody."""

    reason: str


class Action(NamedTuple):
    """An operation on one resource, as an authorizer is asked about it."""

    operation: Operation
    resource_type: ResourceType
    name: str | bytes
    """The resource's name; of a topic that the request names by id, the id."""


Requirements = tuple[Requirement, ...] | NothingRequired


def of_request(operation: Operation, resource_type: ResourceType, *fields: str, when: str | None = None) -> Requirement:
    """Declare what the whole request needs: without it the answer is an error."""
    return Requirement(Scope.REQUEST, operation, resource_type, fields, None, when)


def of_items(
    operation: Operation,
    resource_type: ResourceType,
    *fields: str,
    unless: Operation | None = None,
    when: str | None = None,
) -> Requirement:
    """Declare what each item of the request needs: without it the others are answered all the same."""
    return Requirement(Scope.ITEM, operation, resource_type, fields, unless, when)


def of_answer(
    operation: Operation, resource_type: ResourceType, *, unless: Operation | None = None, when: str | None = None
) -> Requirement:
    """Declare what the answer may name only to those who have the right; the request does not name it."""
    return Requirement(Scope.ANSWER, operation, resource_type, (), unless, when)


def actions_of(requirements: Iterable[Requirement], request: Struct, version: int) -> Iterator[Action]:
    """Yield the actions that the whole request stands or falls with, as far as the request alone says so."""
    for needed in requirements:
        if needed.scope is Scope.REQUEST and needed.when is None:
            for name in resources_of(needed, request, version):
                yield Action(needed.operation, needed.resource_type, name)


def resources_of(requirement: Requirement, request: Struct, version: int) -> Iterator[str | bytes]:
    """Yield the names, or topic ids, of the resources that a request of that version names; a name may come twice."""
    if not requirement.fields:
        yield CLUSTER_NAME
    for path in requirement.fields:
        steps = steps_of(type(request), path, version)
        for found in () if steps is None else _follow([request], steps):
            if requirement.resource_type is ResourceType.CLUSTER:
                yield CLUSTER_NAME
            elif found is not None and found != ZERO_UUID:
                yield found


class Step(msgspec.Struct, frozen=True):
    """One field of a path."""

    field: FieldSpec | None
    """None at the beginning of a path that only chooses requests."""
    chosen_by: str | None
    value: int


_STEP = re.compile(r"(\w*)(?:\[(\w+)=(-?\d+)\])?")


@cache
def steps_of(request_type: type[Struct], path: str, version: int) -> tuple[Step, ...] | None:
    """Read a path; None for a version that lacks one of its fields. Raises LookupError for a field that no version has.

    The names of resources are strings, or ids.
    """
    steps: list[Step] = []
    kind: type[Struct] | None = request_type
    lacks = False
    for part in path.split("."):
        matched = _STEP.fullmatch(part)
        if matched is None or kind is None or not (matched[1] or (matched[2] and not steps)):
            raise LookupError(f"{request_type.__name__}: {path}")
        name, chosen_by, value = matched.groups()
        field = _field(kind, name, path) if name else None
        if field is not None:
            lacks |= version not in field.versions
            kind = field.struct
        if chosen_by is not None and (kind is None or _field(kind, chosen_by, path).type.startswith("[]")):
            raise LookupError(f"{request_type.__name__}: {path}: nothing can be chosen by {chosen_by}")
        steps.append(Step(field, chosen_by, int(value or 0)))
    return None if lacks else tuple(steps)


def _field(kind: type[Struct], name: str, path: str) -> FieldSpec:
    found = next((field for field in fields_of(kind) if field.name == name), None)
    if found is None:
        raise LookupError(f"{path}: {kind.__name__} has no {name}")
    return found


def _follow(values: list[Any], steps: Iterable[Step]) -> list[Any]:
    for step in steps:
        field = step.field
        if field is not None:
            values = [getattr(value, field.name) for value in values]
            if field.array:
                values = [item for array in values for item in array or ()]
        if step.chosen_by is not None:
            values = [value for value in values if getattr(value, step.chosen_by) == step.value]
    return values
