"""What an API requires: operations on resources, declared by its handler, and the resources that one request names.

Owns the form of such a declaration. An authorizer is given both; `authorizer` is the one place that decides. Must not
know any API.

Source: Kafka's table "Operations and Resources on Protocols", and where it differs from what runs, KafkaApis.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.protocol.schema import ZERO_UUID
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pybroker.protocol.schema import Struct
    from pybroker.security.selectors import Selector


class Scope(Enum):
    """What is refused to a principal that lacks the right."""

    REQUEST = "the whole request"
    ITEM = "an item of the request"
    RESPONSE = "what the answer names"


class Requirement(msgspec.Struct, frozen=True):
    """An operation that a request needs on resources of one type."""

    scope: Scope
    operation: Operation
    resource_type: ResourceType
    selectors: tuple[Selector, ...] = ()
    """Where a request names the resources. The cluster has one name: a selector of it selects the requests, or the
    items, that need it; without a selector all do."""
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


def of_request(
    operation: Operation, resource_type: ResourceType, *selectors: Selector, when: str | None = None
) -> Requirement:
    """Declare a requirement of the whole request: without it the response is an error."""
    return Requirement(Scope.REQUEST, operation, resource_type, selectors, None, when)


def of_items(
    operation: Operation,
    resource_type: ResourceType,
    *selectors: Selector,
    unless: Operation | None = None,
    when: str | None = None,
) -> Requirement:
    """Declare a requirement of each item of the request: other items are handled without it."""
    return Requirement(Scope.ITEM, operation, resource_type, selectors, unless, when)


def of_response(
    operation: Operation, resource_type: ResourceType, *, unless: Operation | None = None, when: str | None = None
) -> Requirement:
    """Declare a requirement of resources that the response names and the request does not."""
    return Requirement(Scope.RESPONSE, operation, resource_type, (), unless, when)


def actions_of(requirements: Iterable[Requirement], request: Struct, version: int) -> Iterator[Action]:
    """Yield the actions that the whole request needs, without those that depend on more than the request."""
    for needed in requirements:
        if needed.scope is Scope.REQUEST and needed.when is None:
            for name in resources_of(needed, request, version):
                yield Action(needed.operation, needed.resource_type, name)


def resources_of(requirement: Requirement, request: Struct, version: int) -> Iterator[str | bytes]:
    """Yield the names, or topic ids, of the resources in a request of that version; with duplicates."""
    if not requirement.selectors:
        yield CLUSTER_NAME
    for selector in requirement.selectors:
        for found in selector.follow(request) if selector.is_in(version) else ():
            if requirement.resource_type is ResourceType.CLUSTER:
                yield CLUSTER_NAME
            elif found is not None and found != ZERO_UUID:
                yield found
