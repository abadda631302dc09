"""What clients of Produce and Fetch may do: asked of the authorizer, kept in the data plane.

Owns how an unresolved request is judged and when the rules that the data plane knows are others. Must not know rules
(docs/adr/0059-acls-in-the-image-decisions-in-the-data-plane.md).
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
    from pybroker.security.authorizer import Judge

DECISIONS = 7_500_000
"""That the data plane remembers, 8 bytes each: 60 MB once so many were taken."""
_CLUSTER = bytes(16)
"""Stands for the cluster among topic ids."""
_NOT_REMEMBERED = 1
"""The version in force where decisions are not remembered, so that none has it."""


class Verdict(NamedTuple):
    """Which topics an unresolved request may use, as it names them."""

    allowed: list[str | bytes]
    version: int
    transactional_id: bool = False
    """Whether its client may write as the transactional id of the request."""


class _Client(msgspec.Struct, frozen=True):
    """Who has sent an unresolved request."""

    principal: Principal
    client_host: str
    api_key: int
    authorizer: Judge | None


class Rights:
    """A publisher of the metadata image. Used from one event loop."""

    def __init__(self, data_plane: DataPlane, judge: Judge | None) -> None:
        self._data_plane = data_plane
        self._judge = judge
        self._set()

    def publish(self, _delta: MetadataDelta, image: MetadataImage) -> None:
        """Decide by the entries of an image."""
        if self._judge is not None:
            before = self._judge.version
            self._judge.follow(image.acls)
            if self._judge.version != before:
                self._set()

    def verdict(self, request: UnresolvedRequest, image: MetadataImage) -> Verdict:
        """Judge a request that the data plane cannot."""
        judge = self._judge
        if judge is None or request.operation is None:
            return Verdict([], 0)
        judge.follow(image.acls)
        self._set()
        said = request.principal
        principal = ANONYMOUS if said is None else Principal(*said)
        client = _Client(principal, request.client_host, request.api_key, judge)
        operation = Operation(request.operation)
        if operation is Operation.CLUSTER_ACTION:
            is_broker = authorizer.allowed(client, operation, ResourceType.CLUSTER, CLUSTER_NAME)
            return Verdict([_CLUSTER] if is_broker else [], judge.version)
        allowed: list[str | bytes] = []
        for named in request.judged:
            topic = image.topics.by_id.get(named) if isinstance(named, bytes) else None
            name = named if isinstance(named, str) else None if topic is None else topic.name
            # An id that nobody has is answered as unknown: there is no name that a right could be about.
            if name is None or authorizer.allowed(client, operation, ResourceType.TOPIC, name):
                allowed.append(named)
        as_id = request.transactional_id
        may_write_as = as_id is not None and authorizer.allowed(
            client, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, as_id
        )
        return Verdict(allowed, judge.version, may_write_as)

    def _set(self) -> None:
        if self._judge is not None:
            self._data_plane.set_rights(decisions=DECISIONS, version=self._judge.version or _NOT_REMEMBERED)
