"""The only place that authorizes operations of principals.

Owns the authorizer of `authorizer.class.name`, and the audit log. Without an authorizer everything is allowed, as in
Kafka. Must not know handlers; the API's own handler responds to a denied client.

`org.apache.kafka.metadata.authorizer.StandardAuthorizer` is `StandardAuthorizer` here. `module:Class` is a class of
the user: it is instantiated with the node's properties, and must have the method `authorize` of `Authorizer`. An
exception denies.

The audit log is the logger `pybroker.authorizer`: denied operations at INFO, allowed ones at DEBUG, in Kafka's
words.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from pybroker.protocol.api_keys import ApiKey
from pybroker.security.acls import AclIndex, Decision, allows_on_any, decide
from pybroker.security.operations import CLUSTER_NAME, OPERATIONS, RESOURCE_NAMES, Operation, ResourceType
from pybroker.security.requirements import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pybroker.metadata.image import AclsImage
    from pybroker.security.principals import Principal

log = logging.getLogger("pybroker.authorizer")

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NOT_REQUESTED = -(2**31)
"""Value of the authorized operations in a response when the client did not request them (KIP-430)."""

EVERY_OPERATION = {kind: sum(1 << operation for operation in operations) for kind, operations in OPERATIONS.items()}


class Authorizer(Protocol):
    """The interface of a user's authorizer."""

    def authorize(self, principal: str, host: str, operation: str, resource_type: str, name: str) -> bool:
        """Whether `User:alice` at an address may `READ` the `TOPIC` of that name. Called on the event loop."""


class AuthorizationRules(Protocol):
    """The interface that the authorizers of this module implement."""

    version: int
    """Incremented when decisions may have changed; 0: decisions must not be cached."""

    def follow(self, acls: AclsImage) -> None:
        """Use these entries from now on."""

    def decide(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> Decision:
        """Authorize one operation on one resource."""

    def allows_on_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether an operation is allowed on any resource of a type."""


class StandardAuthorizer:
    """Authorizes by the access control entries of the metadata image."""

    def __init__(self, super_users: Iterable[str] = (), *, allow_if_none: bool = False) -> None:
        """`super_users` are allowed everything; `allow_if_none` is `allow.everyone.if.no.acl.found`."""
        self._super_users = frozenset(super_users)
        self._if_none = allow_if_none
        self._index = AclIndex()
        self._acls: AclsImage | None = None
        self.version = 1

    def follow(self, acls: AclsImage) -> None:
        """Use these entries from now on."""
        if acls is not self._acls:
            self._index.update({} if self._acls is None else self._acls.by_id, acls.by_id)
            self._acls = acls
            self.version += 1

    def decide(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> Decision:
        """Authorize one operation on one resource."""
        if principal in self._super_users:
            return Decision(True, "SuperUser")
        return decide(self._index, principal, host, operation, kind, name, if_none=self._if_none)

    def allows_on_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether an operation is allowed on any resource of a type."""
        if principal in self._super_users:
            return True
        return allows_on_any(self._index, principal, host, operation, kind, if_none=self._if_none)


class ForeignAuthorizer:
    """Calls an authorizer of the user. Its decisions are not cached, since they may change at any time."""

    version = 0

    def __init__(self, name: str, properties: Mapping[str, str]) -> None:
        """`name` is `module:Class`. Raises the errors of the import and of the class."""
        module, _, attribute = name.partition(":")
        self._name = name
        self._authorizer: Authorizer = getattr(import_module(module), attribute)(properties)

    def follow(self, acls: AclsImage) -> None:
        """Do nothing: the authorizer does not use the entries."""

    def decide(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> Decision:
        """Authorize one operation on one resource; an exception denies."""
        try:
            allowed = self._authorizer.authorize(principal, host, operation.name, kind.name, name) is True
        except Exception:
            log.exception("The authorizer %s failed: denying the operation", self._name)
            allowed = False
        return Decision(allowed, self._name)

    def allows_on_any(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        """Whether the operation is allowed on the resource with the name `*`, which stands for any."""
        return self.decide(principal, host, operation, kind, "*").allowed


def build(
    name: str, super_users: str | None, properties: Mapping[str, str], *, if_none: bool
) -> AuthorizationRules | None:
    """Return the authorizer of a node, None without one."""
    if not name:
        return None
    if name == STANDARD:
        return StandardAuthorizer(parse_super_users(super_users or ""), allow_if_none=if_none)
    return ForeignAuthorizer(name, properties)


def parse_super_users(text: str) -> list[str]:
    """Parse the semicolon-separated principals of `super.users`. Raises ValueError for an invalid principal."""
    users = [user.strip() for user in text.split(";") if user.strip()]
    for user in users:
        if not all(user.partition(":")):
            raise ValueError(f"expected a string in format principalType:principalName but got {user}")
    return users


class Requester(Protocol):
    """The client and its address, as ACLs name them."""

    @property
    def principal(self) -> Principal:
        """Return the authenticated principal of the connection."""

    @property
    def client_host(self) -> str:
        """Return the client's address."""

    @property
    def api_key(self) -> int:
        """Return the API key of the request."""

    @property
    def authorizer(self) -> AuthorizationRules | None:
        """Return the authorizer with the newest entries; None where everything is allowed."""


def denied(requester: Requester, actions: Iterable[Action]) -> Sequence[Action]:
    """Return the denied ones of these actions. Topics are given by name: ids have been resolved."""
    if requester.authorizer is None:
        return ()
    return [action for action in actions if not allowed(requester, *action)]


def allowed(
    requester: Requester, operation: Operation, kind: ResourceType, name: str | bytes, *, is_requested: bool = True
) -> bool:
    """Whether an operation is allowed on a resource; `is_requested` is false where the client did not attempt it."""
    rules = requester.authorizer
    if rules is None:
        return True
    text = name.decode(errors="replace") if isinstance(name, bytes) else name
    principal, host = str(requester.principal), requester.client_host
    decision = rules.decide(principal, host, operation, kind, text)
    level = logging.DEBUG if decision.allowed or not is_requested else logging.INFO
    if log.isEnabledFor(level):
        log.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s "
            "with resourceRefCount = 1 based on rule %s",
            one_line(principal),
            "Allowed" if decision.allowed else "Denied",
            operation.name,
            host,
            _camel(RESOURCE_NAMES[kind]),
            one_line(text),
            _camel(ApiKey(requester.api_key).name),
            decision.rule,
        )
    return decision.allowed


def one_line(text: str) -> str:
    """Escape a client's text for the log: line breaks and other control characters."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def allowed_on_cluster(requester: Requester, operation: Operation) -> bool:
    """Whether an operation on the cluster is allowed."""
    return allowed(requester, operation, ResourceType.CLUSTER, CLUSTER_NAME)


def allowed_on_any(requester: Requester, operation: Operation, kind: ResourceType) -> bool:
    """Whether the requester is allowed an operation on any resource of a type (KIP-679)."""
    rules = requester.authorizer
    return rules is None or rules.allows_on_any(str(requester.principal), requester.client_host, operation, kind)


def authorized_operations(requester: Requester, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
    """Return the allowed operations on a resource, as the bit field of responses (KIP-430)."""
    if requester.authorizer is None:
        return EVERY_OPERATION[resource_type]
    return sum(
        1 << operation
        for operation in OPERATIONS[resource_type]
        if allowed(requester, operation, resource_type, name, is_requested=False)
    )


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
