"""Authorization of single items of a request: unauthorized items get an error, and the handler processes the others.

Owns the split of a request by the handler's declaration (`of_items`), and the merge of both responses. A handler whose
items are not in one list of the request authorizes them itself. Must not know any particular API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.handlers.errors import WireError, denial
from pybroker.machine.reply import Reply
from pybroker.protocol.schema import ZERO_UUID
from pybroker.security import authorizer
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType
from pybroker.security.requirements import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pybroker.handlers.context import RequestContext
    from pybroker.protocol.errors import ErrorCode
    from pybroker.protocol.schema import Message
    from pybroker.security.requirements import Requirement

Handle = "Callable[[Any, RequestContext], Any]"
Failed = "Callable[[Any, int, WireError], Any]"


class _Items(msgspec.Struct, frozen=True):
    """The items of a request to which a requirement applies."""

    requirement: Requirement
    list_name: str
    choose: Callable[[Any, Any], bool]
    """Returns whether the requirement applies to an item of a request."""
    name: Callable[[Any], Any]


def may(
    context: RequestContext, operation: Operation, kind: ResourceType, name: str, *, is_requested: bool = True
) -> bool:
    """Return whether the client is authorized for an operation on a resource."""
    return authorizer.allowed(context, operation, kind, name, is_requested=is_requested)


def may_by_id(context: RequestContext, operation: Operation, topic_id: bytes) -> bool:
    """Return whether the client is authorized for an operation on a topic by id.

    True for unknown ids, which fail later.
    """
    topic = context.image.topics.by_id.get(topic_id)
    return topic is None or may(context, operation, ResourceType.TOPIC, topic.name)


def checked(handle: Callable[[Any, RequestContext], Any], requirements: tuple[Requirement, ...], failed: Any) -> Any:
    """Return the handler with the authorization of its items; the handler itself if it has no such requirements."""
    of_items = tuple(needed for needed in requirements if needed.scope is Scope.ITEM and needed.when is None)
    if not of_items:
        return handle

    def handle_checked(request: Any, context: RequestContext) -> Any:
        if context.authorizer is None:
            return handle(request, context)
        refused = _refused(of_items, request, context)
        if not refused:
            return handle(request, context)
        return _divide(handle, failed, request, context, refused)

    return handle_checked


def _refused(
    requirements: tuple[Requirement, ...], request: Any, context: RequestContext
) -> dict[ErrorCode, dict[str, set[int]]]:
    """Return the indices of unauthorized items, by error code and by the name of their list."""
    refused: dict[ErrorCode, dict[str, set[int]]] = {}
    known: dict[tuple[Operation, ResourceType, Any], bool] = {}
    taken: set[tuple[str, int]] = set()
    for needed in requirements:
        if needed.unless is not None and authorizer.allowed(
            context, needed.unless, ResourceType.CLUSTER, CLUSTER_NAME, is_requested=False
        ):
            continue
        for list_name, place, name in _named(needed, request, context.version):
            key = needed.operation, needed.resource_type, name
            allowed = known.get(key)
            if allowed is None:
                allowed = known[key] = _allowed(context, needed, name)
            if allowed or (list_name, place) in taken:
                continue
            code = denial(needed.resource_type).code
            if list_name == "":
                raise denial(needed.resource_type)
            taken.add((list_name, place))
            refused.setdefault(code, {}).setdefault(list_name, set()).add(place)
    return refused


def _allowed(context: RequestContext, needed: Requirement, name: Any) -> bool:
    if isinstance(name, bytes):
        return may_by_id(context, needed.operation, name)
    return may(context, needed.operation, needed.resource_type, name)


def _named(needed: Requirement, request: Message, version: int) -> Iterator[tuple[str, int, Any]]:
    """Yield list, index in the list and name of each resource; the list is "" for a resource of the whole request."""
    for selector in needed.selectors:
        if not selector.is_in(version):
            continue
        outer, *inner = selector.steps
        if outer.field is None:
            if outer.where is not None and not outer.where.holds(request):
                continue
            outer, *inner = inner
        if outer.field is None:
            continue
        if not outer.field.array:
            name = getattr(request, outer.field.name)
            if name:
                yield "", 0, name
            continue
        for place, item in enumerate(getattr(request, outer.field.name) or ()):
            if outer.where is not None and not outer.where.holds(item):
                continue
            if needed.resource_type is ResourceType.CLUSTER:
                yield outer.field.name, place, CLUSTER_NAME
                continue
            name = item
            for step in inner:
                name = getattr(name, step.field.name) if step.field is not None else name
            if name is not None and name != ZERO_UUID and (name != "" or not inner):
                yield outer.field.name, place, name


def _divide(
    handle: Callable[[Any, RequestContext], Any],
    failed: Callable[[Any, int, WireError], Any],
    request: Any,
    context: RequestContext,
    refused: dict[ErrorCode, dict[str, set[int]]],
) -> Any:
    lists = {name for places in refused.values() for name in places}
    removed: dict[str, set[int]] = {name: set() for name in lists}
    responses = []
    for code, places in refused.items():
        some = {
            name: [item for place, item in enumerate(getattr(request, name)) if place in places.get(name, ())]
            for name in lists
        }
        responses.append(failed(msgspec.structs.replace(request, **some), context.version, WireError(code, None)))
        for name, numbers in places.items():
            removed[name] |= numbers
    left = {
        name: [item for place, item in enumerate(getattr(request, name)) if place not in removed[name]]
        for name in lists
    }
    if not any(left.values()):
        first, *others = responses
        return _joined(first, others)
    outcome = handle(msgspec.structs.replace(request, **left), context)
    if type(outcome) is Reply:
        return _after(outcome, responses)
    if hasattr(outcome, "__await__"):
        return _after(outcome, responses)
    return _joined(outcome, responses)


async def _after(outcome: Any, responses: list[Any]) -> Any:
    return _joined(await outcome, responses)


def _joined(response: Any, responses: list[Any]) -> Any:
    """Append the items of other responses to the lists of `response`."""
    for reply in responses:
        for name in response.__struct_fields__:
            items = getattr(response, name)
            if isinstance(items, list):
                setattr(response, name, [*items, *getattr(reply, name)])
    return response
