"""Client quotas of the metadata image (KIP-546), and the change of them that ClientQuotaRecord means.

Owns the shape of an entity, and what a record sets and takes away. Must not know which entity's limit binds a client,
nor which keys there are: the controller refuses keys that no part of a broker reads.
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
"""Whom a quota binds: (type, name) of each part in the order of the types; the name None is the default entity."""

_NOTHING: Mapping[str, float] = {}


def quota_entity(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """Return the entity of parts, each (type, name); of two parts of a type the last one counts, as in Kafka."""
    return tuple(sorted(dict(parts).items(), key=lambda part: part[0]))


class ClientQuotasImage(msgspec.Struct, frozen=True):
    """The client quotas that somebody set."""

    by_entity: Mapping[QuotaEntity, Mapping[str, float]] = {}
    """Limits by key (`producer_byte_rate`: bytes a second, ...); an entity without any is not here."""

    def of(self, *parts: tuple[str, str | None]) -> Mapping[str, float]:
        """Return the limits of exactly one entity; the same object as long as nothing of it changes."""
        return self.by_entity.get(quota_entity(parts), _NOTHING)

    def apply(self, record: ClientQuotaRecord) -> ClientQuotasImage:
        """Return the image after one record."""
        delta = ClientQuotasDelta(self)
        delta.apply(record)
        return delta.build()


EMPTY = ClientQuotasImage()


class ClientQuotasDelta:
    """Quotas as they become."""

    __slots__ = ("_base", "changed")

    def __init__(self, base: ClientQuotasImage) -> None:
        self._base = base
        # By entity, of those that something happened to; empty where no limit is left.
        self.changed: dict[QuotaEntity, dict[str, float]] = {}

    def apply(self, record: ClientQuotaRecord) -> None:
        """Set a limit, or take it away; what is not there may be taken away, as Kafka's image allows."""
        entity = quota_entity((part.entity_type, part.entity_name) for part in record.entity)
        limits = self.changed.get(entity)
        if limits is None:
            limits = self.changed[entity] = dict(self._base.by_entity.get(entity, _NOTHING))
        if record.remove:
            limits.pop(record.key, None)
        else:
            limits[record.key] = record.value

    def become(self, image: ClientQuotasImage) -> None:
        """Change to what an image has, of a delta without changes."""
        before, after = self._base.by_entity, image.by_entity
        for entity in before.keys() | after.keys():
            if before.get(entity) != after.get(entity):
                self.changed[entity] = dict(after.get(entity, _NOTHING))

    def build(self) -> ClientQuotasImage:
        """Make the image; the base itself when nothing happened."""
        if not self.changed:
            return self._base
        merged: dict[QuotaEntity, Mapping[str, float]] = {**self._base.by_entity, **self.changed}
        return ClientQuotasImage(by_entity={entity: limits for entity, limits in merged.items() if limits})


def quota_values(quotas: ClientQuotasImage) -> Iterator[tuple[QuotaEntity, str, float]]:
    """Return each limit by itself: whom it binds, its key, its value."""
    for entity, limits in quotas.by_entity.items():
        for key, value in limits.items():
            yield entity, key, value
