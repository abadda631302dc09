"""Authorization of Produce and Fetch: decisions of the authorizer, cached in the data plane.

Owns the authorization of unresolved requests, and the invalidation of the data plane's cached decisions. Must not know
ACLs (docs/adr/0059-acls-in-the-image-decisions-in-the-data-plane.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.security import authorizer
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType
from pybroker.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage
    from pybroker.net.native import DataPlane, UnresolvedRequest
    from pybroker.security.authorizer import AuthorizationRules

DECISIONS = 7_500_000
"""Maximum cached decisions in the data plane, 8 bytes each: 60 MB in total."""
_CLUSTER = bytes(16)
"""Represents the cluster among topic ids."""
_NOT_REMEMBERED = 1
"""The version in force if decisions are not cached. No decision has it."""


class Authorization(NamedTuple):
    """The allowed topics of an unresolved request, by its names or ids."""

    allowed: list[str | bytes]
    version: int
    transactional_id: bool = False
    """Whether the client may write with the request's transactional id."""


class _Client(msgspec.Struct, frozen=True):
    """The client of an unresolved request."""

    principal: Principal
    client_host: str
    api_key: int
    authorizer: AuthorizationRules | None


class Rights:
    """Authorizes unresolved requests. A metadata publisher. Used from one event loop."""

    def __init__(self, data_plane: DataPlane, rules: AuthorizationRules | None) -> None:
        self._data_plane = data_plane
        self._rules = rules
        self._set()

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply the access control entries of an image."""
        if self._rules is not None:
            before = self._rules.version
            self._rules.follow(image.acls)
            if self._rules.version != before:
                self._set()

    def decision(self, request: UnresolvedRequest, image: MetadataImage) -> Authorization:
        """Return the authorization of an unresolved request."""
        rules = self._rules
        if rules is None or request.operation is None:
            return Authorization([], 0)
        rules.follow(image.acls)
        self._set()
        reported = request.principal
        principal = ANONYMOUS if reported is None else Principal(*reported)
        client = _Client(principal, request.client_host, request.api_key, rules)
        operation = Operation(request.operation)
        if operation is Operation.CLUSTER_ACTION:
            is_broker = authorizer.allowed(client, operation, ResourceType.CLUSTER, CLUSTER_NAME)
            return Authorization([_CLUSTER] if is_broker else [], rules.version)
        allowed: list[str | bytes] = []
        for named in request.checked:
            topic = image.topics.by_id.get(named) if isinstance(named, bytes) else None
            name = named if isinstance(named, str) else None if topic is None else topic.name
            # An unknown topic id is passed on and rejected later as unknown: without a name, there is nothing to
            # authorize.
            if name is None or authorizer.allowed(client, operation, ResourceType.TOPIC, name):
                allowed.append(named)
        as_id = request.transactional_id
        may_write_as = as_id is not None and authorizer.allowed(
            client, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, as_id
        )
        return Authorization(allowed, rules.version, may_write_as)

    def _set(self) -> None:
        if self._rules is not None:
            self._data_plane.set_rights(decisions=DECISIONS, version=self._rules.version or _NOT_REMEMBERED)
