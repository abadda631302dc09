"""Admin's calls that create, describe and delete access control entries on any Kafka. `AsyncAdmin` inherits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from pybroker.client.network.cluster import ANY, Cluster, raise_refused, retried
from pybroker.protocol.messages import create_acls as create
from pybroker.protocol.messages import delete_acls as delete
from pybroker.protocol.messages import describe_acls as describe


class AclPattern(Struct, frozen=True, order=True):
    """The resources that an entry applies to, by Kafka's numbers."""

    resource_type: int
    name: str
    pattern_type: int
    """3 for a literal name, 4 for a prefix."""


class Acl(Struct, frozen=True, order=True):
    """One access control entry."""

    pattern: AclPattern
    principal: str
    host: str
    """An address, or `*`."""
    operation: int
    permission: int
    """2 denies, 3 allows."""

    @property
    def entry(self) -> tuple[str, str, int, int]:
        """Return the part of the entry beside its resource pattern: principal, host, operation and permission."""
        return self.principal, self.host, self.operation, self.permission


class AclFilter(Struct, frozen=True):
    """A filter of entries: 1 (any) and None match every value."""

    resource_type: int = 1
    name: str | None = None
    pattern_type: int = 1
    """2 (match) matches every pattern that includes the name."""
    principal: str | None = None
    host: str | None = None
    operation: int = 1
    permission: int = 1

    @classmethod
    def of(cls, pattern: AclPattern) -> AclFilter:
        """Return a filter that matches all entries of these resources."""
        return cls(pattern.resource_type, pattern.name, pattern.pattern_type)


class AclCalls:
    """The calls about access control entries."""

    cluster: Cluster

    @retried
    async def describe_acls(self, wanted: AclFilter | None = None) -> list[Acl]:
        """Return the entries that match the filter, or all without a filter. Raises BrokerError."""
        request = describe.DescribeAclsRequest(**_filter(wanted or AclFilter()))
        async with self.cluster.node(ANY) as connection:
            response = await connection.query(request, describe.DescribeAclsResponse)
            raise_refused(connection.server, [("the ACLs", response.error_code, response.error_message)])
        return [_acl(resource, entry) for resource in response.resources for entry in resource.acls]

    @retried
    async def create_acls(self, acls: Sequence[Acl]) -> None:
        """Create entries. An entry that exists is no error. Raises BrokerError for the first that is rejected."""
        creations = [
            create.AclCreation(
                resource_type=acl.pattern.resource_type,
                resource_name=acl.pattern.name,
                resource_pattern_type=acl.pattern.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
        async with self.cluster.node(ANY) as connection:
            response = await connection.query(create.CreateAclsRequest(creations=creations), create.CreateAclsResponse)
            outcomes = zip(acls, response.results, strict=True)
            raise_refused(
                connection.server, [(f"the ACL {acl}", one.error_code, one.error_message) for acl, one in outcomes]
            )

    @retried
    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[Acl]:
        """Delete the entries that match the filters, and return them.

        Raises BrokerError for the first that is rejected.
        """
        request = delete.DeleteAclsRequest(filters=[delete.DeleteAclsFilter(**_filter(one)) for one in filters])
        async with self.cluster.node(ANY) as connection:
            response = await connection.query(request, delete.DeleteAclsResponse)
            outcomes = zip(filters, response.filter_results, strict=True)
            raise_refused(
                connection.server, [(f"the filter {one}", got.error_code, got.error_message) for one, got in outcomes]
            )
        return [_acl(entry, entry) for result in response.filter_results for entry in result.matching_acls]


def _acl(about: Any, entry: Any) -> Acl:
    """Build an entry from two structures of a response: its resource pattern, and the rest of it."""
    pattern = AclPattern(about.resource_type, about.resource_name, about.pattern_type)
    return Acl(pattern, entry.principal, entry.host, entry.operation, entry.permission_type)


def _filter(one: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": one.resource_type,
        "resource_name_filter": one.name,
        "pattern_type_filter": one.pattern_type,
        "principal_filter": one.principal,
        "host_filter": one.host,
        "operation": one.operation,
        "permission_type": one.permission,
    }
