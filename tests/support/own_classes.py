"""Python classes that a user plugs into a broker: an authorizer and a principal builder.

The settings of a test's broker refer to them as `tests.support.own_classes:Groups`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from pybroker.security.principal_builder import Proof

READERS, OWN = "Group:readers", "Broker:own"


class Requested(NamedTuple):
    principal: str
    host: str
    operation: str
    resource_type: str
    name: str


class Groups:
    """A principal builder. alice, bob and the certificate `CN=reader` are readers. The test may do everything."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        assert properties["principal.builder.class"] == f"{__name__}:Groups"

    def build(self, proof: Proof) -> str:
        if proof.certificate is not None:
            assert proof.mechanism == ""
            return READERS if proof.name == "CN=reader" else f"User:{proof.name}"
        if proof.name == "nobody":
            raise LookupError(proof.name)
        assert (proof.mechanism, proof.host) == ("PLAIN", "127.0.0.1")
        return READERS if proof.name in ("alice", "bob") else OWN


class ReadersOnly:
    """An authorizer that allows reads to readers and everything to the test. Records each authorization request."""

    requested: ClassVar[list[Requested]] = []

    def __init__(self, properties: Mapping[str, str]) -> None:
        assert properties["authorizer.class.name"] == f"{__name__}:ReadersOnly"
        self.requested.clear()

    def authorize(self, principal: str, host: str, operation: str, resource_type: str, name: str) -> bool:
        ReadersOnly.requested.append(Requested(principal, host, operation, resource_type, name))
        if name == "trap":
            raise KeyError(name)
        return principal == OWN or (principal == READERS and operation in ("READ", "DESCRIBE") and name != "closed")
