"""Admin's calls that describe and alter client quotas (KIP-546): limits of users, clients and addresses.

Limits are numbers by key: `producer_byte_rate` and `consumer_byte_rate` in bytes a second, `request_percentage` in
percent of one thread, `controller_mutation_rate` in partitions a second, `connection_creation_rate` of an address in
connections a second. The broker decides which quota applies to a client.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

from pybroker.client.network.cluster import ANY, Cluster, raise_refused, retried
from pybroker.protocol.messages import alter_client_quotas as alter
from pybroker.protocol.messages import describe_client_quotas as describe

QuotaEntity: TypeAlias = "tuple[tuple[str, str | None], ...]"
"""The entity of a quota, sorted by type: (`client-id`, `ip` or `user`; its name, None for the default)."""


class AnyName(Enum):
    """Matches every name."""

    ANY = "any"


ANY_NAME = AnyName.ANY
"""As a name of a filter: every name of that type, and the default."""
NameFilter: TypeAlias = str | AnyName | None
"""A name, None for the default, or `ANY_NAME`."""


class QuotaCalls:
    """The calls about client quotas."""

    cluster: Cluster

    @retried
    async def describe_client_quotas(
        self, components: Mapping[str, NameFilter] | None = None, *, strict: bool = False
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return the limits of entities that match all components, by type: a name, None (default) or `ANY_NAME`.

        With `strict`, entities with further components are omitted. Without components all match. Raises
        BrokerError.
        """
        request = describe.DescribeClientQuotasRequest(
            components=[_component(kind, name) for kind, name in (components or {}).items()], strict=strict
        )
        async with self.cluster.node(ANY) as connection:
            response = await connection.query(request, describe.DescribeClientQuotasResponse)
            raise_refused(connection.server, [("the client quotas", response.error_code, response.error_message)])
        return {
            _entity([(part.entity_type, part.entity_name) for part in entry.entity]): {
                value.key: value.value for value in entry.values
            }
            for entry in response.entries or ()
        }

    @retried
    async def alter_client_quotas(
        self, entity: Mapping[str, str | None], changes: Mapping[str, float | None], *, validate_only: bool = False
    ) -> None:
        """Set the limits of an entity, given as a name by type, with None for the default. A limit of None is removed.

        Raises BrokerError.
        """
        entry = alter.EntryData(
            entity=[alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            ops=[
                alter.OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
                for key, value in changes.items()
            ],
        )
        request = alter.AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
        async with self.cluster.controller() as connection:
            response = await connection.query(request, alter.AlterClientQuotasResponse)
            raise_refused(
                connection.server,
                [(f"the quota of {dict(entity)}", one.error_code, one.error_message) for one in response.entries],
            )


def _component(kind: str, name: NameFilter) -> describe.ComponentData:
    if isinstance(name, AnyName):
        return describe.ComponentData(entity_type=kind, match_type=2, match=None)
    return describe.ComponentData(entity_type=kind, match_type=0 if name is not None else 1, match=name)


def _entity(parts: list[tuple[str, str | None]]) -> QuotaEntity:
    return tuple(sorted(parts, key=lambda part: part[0]))
