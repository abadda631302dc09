"""DescribeClientQuotas: returns the quotas of users, client ids and IP addresses that a filter matches (KIP-546).

Key
    48

Versions
    0-1

Behaviour
    - A part of an entity is matched by its name, as the default, or by its type only. A strict filter matches only
      entities without other parts. Without components, a strict filter matches none, and a non-strict one all.
    - INVALID_REQUEST with Kafka's message for an invalid filter, UNSUPPORTED_VERSION for an unknown entity type.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.metadata.quota_filter import Component, QuotaFilter
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced
    from pybroker.metadata.quotas import ClientQuotasImage


def _failed(_request: DescribeClientQuotasRequest, _version: int, error: WireError) -> DescribeClientQuotasResponse:
    words = error.message or error.code.message
    return DescribeClientQuotasResponse(error_code=error.code, error_message=words, entries=None)


@handles(
    DescribeClientQuotasRequest,
    requires=[of_request(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)],
    failed=_failed,
)
def describe_client_quotas(request: DescribeClientQuotasRequest, context: BrokerContext) -> Reply:
    """Return the matching quotas of the image."""
    components = tuple(Component(one.entity_type, one.match_type, one.match) for one in request.components)
    wanted = QuotaFilter(components, request.strict)
    unknown = wanted.unknown_type()
    if unknown:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {unknown}")
    fault = wanted.fault()
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_REQUEST, fault)
    return context.services.slices.run(_describe(wanted, context.image.quotas))


def _describe(wanted: QuotaFilter, quotas: ClientQuotasImage) -> Sliced[DescribeClientQuotasResponse]:
    entries = []
    for entity, limits in quotas.by_entity.items():
        yield
        if wanted.matches(entity):
            parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
            values = [ValueData(key=key, value=value) for key, value in limits.items()]
            entries.append(EntryData(entity=parts, values=values))
    return DescribeClientQuotasResponse(error_message=None, entries=entries)
