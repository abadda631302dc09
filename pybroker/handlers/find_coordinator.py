"""FindCoordinator: which broker coordinates a group or a transaction.

Key
    10

Versions
    0-6

Behaviour
    - A group's coordinator is the leader of partition abs(hash(group)) mod partitions of __consumer_offsets, the hash
      being Java's. The topic is created when it is first needed, and the answer waits until this broker serves it.
    - Where the topic cannot be created, COORDINATOR_NOT_AVAILABLE says why, and so does the broker's log.
    - A partition without a leader that can be reached is COORDINATOR_NOT_AVAILABLE with node -1.
    - A transactional id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which ends a producer at once
      (docs/adr/0022-transactional-ids-are-refused-for-good.md).
    - A key type other than group, transaction and (version 6 and later) share is INVALID_REQUEST.

Version notes
    - One key in versions 0-3, many from version 4 on (KIP-699).

Not done
    - There is no transaction coordinator yet, and no share coordinator: a share group's key is
      COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pybroker.coordinator.group.offsets_topic import (
    OFFSETS_TOPIC,
    build_offsets_topic,
    offsets_topic_settings,
)
from pybroker.handlers.errors import NO_TRANSACTIONS, ApiError, WireError
from pybroker.handlers.registry import handles
from pybroker.handlers.topic_metadata import broker_addresses
from pybroker.machine.slices import whole
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.find_coordinator import (
    FIRST_VERSION_WITH_MANY_KEYS,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Iterator, Sequence

    from pybroker.handlers.context import RequestContext
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_FIRST_VERSION_WITH_SHARE_GROUPS = 6


class _Found(NamedTuple):
    """Where a key's coordinator is, or why it is nowhere."""

    key: str
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE


def _failed(request: FindCoordinatorRequest, version: int, error: WireError) -> FindCoordinatorResponse:
    found = (_Found(key, error_code=error.code) for key in _keys(request, version))
    return whole(_build_response(found, version, error.message))


@handles(
    FindCoordinatorRequest,
    requires=[
        of_items(Operation.DESCRIBE, ResourceType.GROUP, "[key_type=0].key", "[key_type=0].coordinator_keys"),
        of_items(
            Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "[key_type=1].key", "[key_type=1].coordinator_keys"
        ),
        of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "[key_type=2]"),
    ],
    failed=_failed,
)
def find_coordinator(
    request: FindCoordinatorRequest, context: RequestContext
) -> Reply | Awaitable[FindCoordinatorResponse]:
    """Return the leaders of the groups' partitions, after creating the topic where it lacks."""
    known = (
        (_GROUP, _TRANSACTION) if context.version < _FIRST_VERSION_WITH_SHARE_GROUPS else (_GROUP, _TRANSACTION, _SHARE)
    )
    if request.key_type not in known:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type {request.key_type}")
    keys = _keys(request, context.version)
    if request.key_type == _TRANSACTION:
        refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        found = (_Found(key, error_code=refused) for key in keys)
        return context.services.slices.run(_build_response(found, context.version, NO_TRANSACTIONS))
    if request.key_type == _GROUP and OFFSETS_TOPIC not in context.image.topics.by_name:
        return _create_and_find(keys, context)
    asked = _find(keys, context) if request.key_type == _GROUP else map(_Found, keys)
    return context.services.slices.run(_build_response(asked, context.version))


def _keys(request: FindCoordinatorRequest, version: int) -> list[str]:
    return [request.key] if version < FIRST_VERSION_WITH_MANY_KEYS else request.coordinator_keys


async def _create_and_find(keys: Sequence[str], context: RequestContext) -> FindCoordinatorResponse:
    response: FindCoordinatorResponse = await context.services.slices.run(await _create(keys, context))
    return response


async def _create(keys: Sequence[str], context: RequestContext) -> Sliced[FindCoordinatorResponse]:
    services = context.services
    brokers = [broker for broker in context.image.cluster.brokers.values() if not broker.fenced]
    (created,) = await services.controller.create_topics([build_offsets_topic(services.config, len(brokers))])
    # Another request may create it meanwhile, which is as good.
    if created.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        refusal = f"{OFFSETS_TOPIC} cannot be created: {created.error_message or created.error_code.message}"
        services.groups.note_refusal(refusal, offsets_topic_settings(services.config))
        return _build_response(map(_Found, keys), context.version, refusal)
    context.image = services.image()
    await services.publisher.published(context.image.offset)
    await services.groups.loaded()
    return _build_response(_find(keys, context), context.version)


def _find(keys: Sequence[str], context: RequestContext) -> Iterator[_Found]:
    topic = context.image.topics.by_name.get(OFFSETS_TOPIC)
    addresses = {broker.node_id: broker for broker in broker_addresses(context)}
    for key in keys:
        if topic is None:
            yield _Found(key)
            continue
        leader = topic.partitions[context.services.groups.partition_for(key)].leader
        address = addresses.get(leader)
        if address is None:
            yield _Found(key)
        else:
            yield _Found(key, leader, address.host, address.port, ErrorCode.NONE)


def _build_response(
    found: Iterable[_Found], version: int, message: str | None = None
) -> Sliced[FindCoordinatorResponse]:
    coordinators = []
    for one in found:
        if version < FIRST_VERSION_WITH_MANY_KEYS:
            return _of_one(one, message)
        coordinators.append(
            Coordinator(
                key=one.key,
                node_id=one.node_id,
                host=one.host,
                port=one.port,
                error_code=one.error_code,
                error_message=_message(one.error_code, message) if one.error_code else "",
            )
        )
        yield
    return FindCoordinatorResponse(coordinators=coordinators)


def _of_one(one: _Found, message: str | None) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=_message(one.error_code, message),
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _message(code: ErrorCode, message: str | None) -> str:
    """Return what went wrong; Kafka says NONE where nothing did."""
    return "NONE" if code is ErrorCode.NONE else message or code.message
