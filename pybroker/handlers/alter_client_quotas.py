"""AlterClientQuotas: sets and removes quotas of users, client ids and IP addresses (KIP-546).

Key
    49

Versions
    0-1

Behaviour
    - Each entity succeeds or fails independently, with all its keys. An entity is a user, a client id or both, each by
      its name or as the default (null), or an IP address.
    - INVALID_REQUEST with Kafka's message for an invalid entity, a key that its type does not have, a value that is not
      positive or not an integer where required, and an IP entity that is neither an address nor a resolvable host name.
    - An entity that occurs twice, or with a key that occurs twice, is rejected with INVALID_REQUEST.
    - The response is sent when this broker enforces the quotas. validate_only does everything but the change.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.client_quotas import QuotaAlteration
from pybroker.handlers.registry import handles
from pybroker.metadata.quotas import quota_entity
from pybroker.protocol.errors import LONGEST_MESSAGE
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntity,
    EntityData,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.metadata.quotas import QuotaEntity
    from pybroker.protocol.errors import ErrorCode

    Altered = tuple[QuotaEntity, ErrorCode, str | None]


def _failed(request: AlterClientQuotasRequest, _version: int, error: WireError) -> AlterClientQuotasResponse:
    words = error.message or error.code.message
    entities = dict.fromkeys(_entity(entry.entity) for entry in request.entries)
    return _response((entity, error.code, words) for entity in entities)


@handles(
    AlterClientQuotasRequest,
    requires=[of_request(Operation.ALTER_CONFIGS, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.BOTH,
    forwarded=True,
)
async def alter_client_quotas(request: AlterClientQuotasRequest, context: RequestContext) -> AlterClientQuotasResponse:
    """Pass the request to the controller, and wait until its changes are applied here."""
    services = context.services
    altered = await services.controller.own().alter_client_quotas(
        [
            QuotaAlteration(_entity(entry.entity), [(op.key, None if op.remove else op.value) for op in entry.ops])
            for entry in request.entries
        ],
        validate_only=request.validate_only,
    )
    await services.publisher.published(services.image().offset)
    return _response(altered)


def _entity(parts: list[EntityData]) -> QuotaEntity:
    return quota_entity((part.entity_type, part.entity_name) for part in parts)


def _response(altered: Iterable[Altered]) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            AlteredEntity(
                error_code=code,
                error_message=words and words[:LONGEST_MESSAGE],
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            )
            for entity, code, words in altered
        ]
    )
