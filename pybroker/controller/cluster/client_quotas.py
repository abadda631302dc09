"""Client quotas (KIP-546): each entity of a request succeeds or fails by itself.

Owns the validation of entities and quotas, with the messages of Kafka's ClientQuotaControlManager. Must not know the
effect of a quota, nor resolve a name: the service that submits the event passes the names that cannot be resolved.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.machine.machine import Outcome
from pybroker.metadata.quotas import CLIENT_ID, IP, USER
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.client_quota import ClientQuotaRecord, EntityData

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.quotas import QuotaEntity
    from pybroker.protocol.schema import Message

_MAX_INT, _MAX_LONG = 2**31 - 1, 2**63 - 1
_DOUBLE = None

_USER_AND_CLIENT_KEYS: dict[str, tuple[int, str] | None] = {
    "consumer_byte_rate": (_MAX_LONG, "LONG"),
    "controller_mutation_rate": _DOUBLE,
    "producer_byte_rate": (_MAX_LONG, "LONG"),
    "request_percentage": _DOUBLE,
}
"""The quota keys of users and clients; an integral quota has a maximum value and the name of its Java type."""
_IP_KEYS: dict[str, tuple[int, str] | None] = {"connection_creation_rate": (_MAX_INT, "INT")}
_LEAST_REMAINDER = 1e-6
"""A value that is closer than this to an integer counts as an integer."""


class QuotaAlteration(NamedTuple):
    """The changes of one entity's quotas."""

    entity: QuotaEntity
    ops: Sequence[tuple[str, float | None]]
    """(key, new value); None removes the quota."""
    is_repeated: bool = False
    """Whether the request names the entity more than once."""


class AlterClientQuotas(msgspec.Struct, frozen=True):
    """Change quotas. The reply is an `AlteredQuotas` for each entity, in their order."""

    alterations: Sequence[QuotaAlteration]
    """Of distinct entities."""
    unresolved: frozenset[str] = frozenset()
    """Names of `ip` entities that are no address and cannot be resolved."""
    validate_only: bool = False


class AlteredQuotas(NamedTuple):
    """The result of one entity's changes."""

    entity: QuotaEntity
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


def one_of_each(alterations: Sequence[QuotaAlteration]) -> list[QuotaAlteration]:
    """Return one alteration of each entity, in the order of first mention, with `is_repeated` for repeated entities."""
    distinct: dict[QuotaEntity, QuotaAlteration] = {}
    for one in alterations:
        distinct[one.entity] = one._replace(is_repeated=one.entity in distinct)
    return list(distinct.values())


def alter_client_quotas(image: MetadataImage, event: AlterClientQuotas) -> Outcome[Message, list[AlteredQuotas]]:
    """Decide about each entity; an unchanged quota writes no record."""
    records: list[Message] = []
    results: list[AlteredQuotas] = []
    for one in event.alterations:
        fault = _fault(one, event.unresolved)
        if fault is not None:
            results.append(AlteredQuotas(one.entity, ErrorCode.INVALID_REQUEST, fault))
            continue
        results.append(AlteredQuotas(one.entity))
        if not event.validate_only:
            records += _records(one, image.quotas.by_entity.get(one.entity, {}))
    return Outcome(tuple(records), results)


def _records(one: QuotaAlteration, current: Mapping[str, float]) -> list[ClientQuotaRecord]:
    entity = [EntityData(entity_type=kind, entity_name=name) for kind, name in one.entity]
    records = []
    for key, value in one.ops:
        if value is None:
            if key in current:
                records.append(ClientQuotaRecord(entity=entity, key=key, remove=True))
        elif current.get(key) != value:
            records.append(ClientQuotaRecord(entity=entity, key=key, value=value))
    return records


def _fault(one: QuotaAlteration, unresolved: frozenset[str]) -> str | None:
    if one.is_repeated or len({key for key, _ in one.ops}) < len(one.ops):
        return f"Ignoring duplicate entity {entity_text(one.entity)}"
    fault = _entity_fault(one.entity, unresolved)
    if fault is not None:
        return fault
    keys = _IP_KEYS if one.entity[0][0] == IP else _USER_AND_CLIENT_KEYS
    for key, value in one.ops:
        if value is not None and (fault := _value_fault(keys, key, value)) is not None:
            return fault
    return None


def _entity_fault(entity: QuotaEntity, unresolved: frozenset[str]) -> str | None:
    if not entity:
        return "Invalid empty client quota entity"
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    names = dict(entity)
    if IP in names:
        if len(names) > 1:
            # Kafka's message lacks the space too.
            return "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        if names[IP] in unresolved:
            return f"{names[IP]} is not a valid IP or resolvable host."
    return None


def _value_fault(keys: Mapping[str, tuple[int, str] | None], key: str, value: float) -> str | None:
    if key not in keys:
        return f"Invalid configuration key {key}"
    # Kafka accepts NaN, but no quota can be enforced with it.
    if math.isnan(value) or value <= 0.0:
        return f"Quota {key} must be greater than 0"
    whole = keys[key]
    if whole is None:
        return None
    most, kind = whole
    if value > most:
        return f"Proposed value for {key} is too large for {'an' if kind == 'INT' else 'a'} {kind}."
    if math.fmod(value, 1.0) > _LEAST_REMAINDER:
        return f"{key} cannot be a fractional value."
    return None


def entity_text(entity: QuotaEntity) -> str:
    """Return an entity in the format of Kafka's messages."""
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity)
    return f"ClientQuotaEntity(entries={{{parts}}})"
