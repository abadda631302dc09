"""FindCoordinator: returns the coordinator of groups or transactional ids.

Key
    10

Versions
    0-6

Behaviour
    - A group's coordinator is the leader of partition abs(hash(group)) mod partitions of __consumer_offsets, with
      Java's hash. The topic is created at its first use, and the response waits until this broker serves it.
    - COORDINATOR_NOT_AVAILABLE with the reason if the topic cannot be created; the reason is also logged.
    - COORDINATOR_NOT_AVAILABLE with node -1 for a partition without a reachable leader.
    - A transactional id's coordinator is determined likewise by __transaction_state.
    - INVALID_REQUEST for a key type other than group, transaction and (since version 6) share.

Version notes
    - One key in versions 0-3, many since version 4 (KIP-699).

Not done
    - There is no share coordinator: a share group's key returns COORDINATOR_NOT_AVAILABLE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.offsets_topic import (
    OFFSETS_TOPIC,
    build_offsets_topic,
    offsets_topic_settings,
)
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC, build_state_topic, state_topic_settings
from pybroker.handlers.errors import ApiError, WireError
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
from pybroker.security.selectors import select, where

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from pybroker.config.broker import BrokerConfig
    from pybroker.coordinator.group.service import GroupCoordinator
    from pybroker.coordinator.transaction.service import TransactionCoordinator
    from pybroker.handlers.context import BrokerContext, BrokerServices
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced
    from pybroker.protocol.messages.create_topics import CreatableTopic

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_FIRST_VERSION_WITH_SHARE_GROUPS = 6


class _Found(msgspec.Struct, frozen=True):
    """The coordinator of a key, or the error."""

    key: str
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE


class _Kind(msgspec.Struct, frozen=True):
    """The topic and the coordinator of one key type."""

    topic: str
    build_topic: Callable[[BrokerConfig, int], CreatableTopic]
    settings: Callable[[BrokerConfig], Mapping[str, int]]
    coordinator: Callable[[BrokerServices], GroupCoordinator | TransactionCoordinator]


_KINDS = {
    _GROUP: _Kind(OFFSETS_TOPIC, build_offsets_topic, offsets_topic_settings, lambda services: services.groups),
    _TRANSACTION: _Kind(STATE_TOPIC, build_state_topic, state_topic_settings, lambda services: services.transactions),
}
"""By key type. There is no coordinator of share groups."""


def _failed(request: FindCoordinatorRequest, version: int, error: WireError) -> FindCoordinatorResponse:
    found = (_Found(key, error_code=error.code) for key in _keys(request, version))
    return whole(_build_response(found, version, error.message))


@handles(
    FindCoordinatorRequest,
    requires=[
        of_items(
            Operation.DESCRIBE,
            ResourceType.GROUP,
            select(where(FindCoordinatorRequest.key_type, 0), FindCoordinatorRequest.key),
            select(where(FindCoordinatorRequest.key_type, 0), FindCoordinatorRequest.coordinator_keys),
        ),
        of_items(
            Operation.DESCRIBE,
            ResourceType.TRANSACTIONAL_ID,
            select(where(FindCoordinatorRequest.key_type, 1), FindCoordinatorRequest.key),
            select(where(FindCoordinatorRequest.key_type, 1), FindCoordinatorRequest.coordinator_keys),
        ),
        of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, select(where(FindCoordinatorRequest.key_type, 2))),
    ],
    failed=_failed,
)
def find_coordinator(
    request: FindCoordinatorRequest, context: BrokerContext
) -> Reply | Awaitable[FindCoordinatorResponse]:
    """Return the leaders of the keys' partitions, after creating the topic if it does not exist."""
    known = (
        (_GROUP, _TRANSACTION) if context.version < _FIRST_VERSION_WITH_SHARE_GROUPS else (_GROUP, _TRANSACTION, _SHARE)
    )
    if request.key_type not in known:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type {request.key_type}")
    keys = _keys(request, context.version)
    kind = _KINDS.get(request.key_type)
    if kind is None:
        return context.services.slices.run(_build_response(map(_Found, keys), context.version))
    if kind.topic not in context.image.topics.by_name:
        return _create_and_find(kind, keys, context)
    return context.services.slices.run(_build_response(_find(kind, keys, context), context.version))


def _keys(request: FindCoordinatorRequest, version: int) -> list[str]:
    return [request.key] if version < FIRST_VERSION_WITH_MANY_KEYS else request.coordinator_keys


async def _create_and_find(kind: _Kind, keys: Sequence[str], context: BrokerContext) -> FindCoordinatorResponse:
    response: FindCoordinatorResponse = await context.services.slices.run(await _create(kind, keys, context))
    return response


async def _create(kind: _Kind, keys: Sequence[str], context: BrokerContext) -> Sliced[FindCoordinatorResponse]:
    services, coordinator = context.services, kind.coordinator(context.services)
    brokers = [broker for broker in context.image.cluster.brokers.values() if not broker.fenced]
    topic = kind.build_topic(services.config, len(brokers))
    (created,) = await services.controller.active().create_topics([topic])
    # Another request may have created it meanwhile.
    if created.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        refusal = f"{kind.topic} cannot be created: {created.error_message or created.error_code.message}"
        coordinator.note_refusal(refusal, kind.settings(services.config))
        return _build_response(map(_Found, keys), context.version, refusal)
    context.image = services.image()
    await services.publisher.published(context.image.offset)
    await coordinator.loaded()
    return _build_response(_find(kind, keys, context), context.version)


def _find(kind: _Kind, keys: Sequence[str], context: BrokerContext) -> Iterator[_Found]:
    topic = context.image.topics.by_name.get(kind.topic)
    coordinator = kind.coordinator(context.services)
    addresses = {broker.node_id: broker for broker in broker_addresses(context)}
    for key in keys:
        if topic is None:
            yield _Found(key)
            continue
        leader = topic.partitions[coordinator.partition_for(key)].leader
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
    """Return the error message; as in Kafka, NONE without an error."""
    return "NONE" if code is ErrorCode.NONE else message or code.message
