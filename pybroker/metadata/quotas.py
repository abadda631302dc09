"""Client quotas of the metadata image (KIP-546), and their delta by ClientQuotaRecord.

Owns the form of an entity, and the application of records. Must not know which entity's limit applies to a client, nor
the valid keys: the controller rejects keys that no broker uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pybroker.protocol.messages.records.client_quota import ClientQuotaRecord

USER, CLIENT_ID, IP = "user", "client-id", "ip"
"""The types of an entity's parts."""

QuotaEntity: TypeAlias = "tuple[tuple[str, str | None], ...]"
"""A quota's entity: (type, name) of each part, ordered by type. The name None is the default entity."""

_NOTHING: Mapping[str, float] = {}


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """Return the entity of (type, name) parts. Of two parts with one type, the last one counts, as in Kafka."""
    return tuple(sorted(dict(parts).items(), key=lambda part: part[0]))


class ClientQuotasImage(msgspec.Struct, frozen=True):
    """All client quotas."""

    by_entity: Mapping[QuotaEntity, Mapping[str, float]] = {}
    """Limits by key (`producer_byte_rate`: bytes a second, ...); an entity without limits is not included."""

    def of(self, *parts: tuple[str, str | None]) -> Mapping[str, float]:
        """Return the limits of exactly this entity: the same object as long as they do not change."""
        return self.by_entity.get(quota_entity(parts), _NOTHING)

    def apply(self, record: ClientQuotaRecord) -> ClientQuotasImage:
        """Return the image after one record."""
        delta = ClientQuotasDelta(self)
        delta.apply(record)
        return delta.build()


EMPTY = ClientQuotasImage()


class ClientQuotasDelta:
    """The changed quotas."""

    __slots__ = ("_base", "changed")

    def __init__(self, base: ClientQuotasImage) -> None:
        self._base = base
        # The limits of changed entities; empty if none are left.
        self.changed: dict[QuotaEntity, dict[str, float]] = {}

    def apply(self, record: ClientQuotaRecord) -> None:
        """Set or remove a limit. A limit that does not exist may be removed, as in Kafka's image."""
        entity = quota_entity((part.entity_type, part.entity_name) for part in record.entity)
        limits = self.changed.get(entity)
        if limits is None:
            limits = self.changed[entity] = dict(self._base.by_entity.get(entity, _NOTHING))
        if record.remove:
            limits.pop(record.key, None)
        else:
            limits[record.key] = record.value

    def become(self, image: ClientQuotasImage) -> None:
        """Record the changes from the base to `image`, in a delta without changes."""
        before, after = self._base.by_entity, image.by_entity
        for entity in before.keys() | after.keys():
            if before.get(entity) != after.get(entity):
                self.changed[entity] = dict(after.get(entity, _NOTHING))

    def build(self) -> ClientQuotasImage:
        """Return the new image; the base itself without changes."""
        if not self.changed:
            return self._base
        merged: dict[QuotaEntity, Mapping[str, float]] = {**self._base.by_entity, **self.changed}
        return ClientQuotasImage(by_entity={entity: limits for entity, limits in merged.items() if limits})


def quota_values(quotas: ClientQuotasImage) -> Iterator[tuple[QuotaEntity, str, float]]:
    """Yield each limit as its entity, key and value."""
    for entity, limits in quotas.by_entity.items():
        for key, value in limits.items():
            yield entity, key, value
