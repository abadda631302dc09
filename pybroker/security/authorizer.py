"""The one place that says what a principal may do.

Owns the answer for a broker without an authorizer, which is every broker yet: everything is allowed, as in Kafka while
`authorizer.class.name` is empty. (Another value of that key is refused at the start.) Must not know handlers; who is
denied something is answered by the API's own handler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pybroker.security.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pybroker.security.operations import ResourceType
    from pybroker.security.principals import Principal
    from pybroker.security.requirements import Action

NOT_ASKED = -(2**31)
"""What a response carries in place of authorized operations when the client did not ask for them (KIP-430)."""

_ALL = {kind: sum(1 << operation for operation in operations) for kind, operations in OPERATIONS.items()}


class Requester(Protocol):
    """Who asks, and from where: what an ACL can name."""

    @property
    def principal(self) -> Principal:
        """The principal that the connection has proved."""

    @property
    def client_host(self) -> str:
        """The client's address."""


def denied(_requester: Requester, _actions: Iterable[Action]) -> Sequence[Action]:
    """Return those of the actions that are not allowed: none, so that there is no need to look at them."""
    return ()


def authorized_operations(_requester: Requester, resource_type: ResourceType) -> int:
    """Return the operations that are allowed on resources of a type, as the bit field of responses (KIP-430): all."""
    return _ALL[resource_type]
