"""A principal builder of the user's: who a client is, by what its connection has proved.

Owns how `principal.builder.class` becomes a builder, and what is refused of what it says. Kafka's default builder is no
class here: the name that SASL has proved is a `User`, and so is what `ssl.principal.mapping.rules` make of a
certificate. Must not know how a connection proves anything.

Called on the event loop, once for each connection that proves who it is, and again when it authenticates again. What
raises, or is no principal, closes the connection. A connection that has proved nothing is `User:ANONYMOUS` without a
question.

Source: Kafka's KafkaPrincipalBuilder (KIP-189), `docs/adr/0081-a-principal-builder-is-asked-about-proofs.md`.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

import msgspec

from pybroker.security.principals import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

log = logging.getLogger("pybroker.security")

DEFAULT = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"


class Proof(msgspec.Struct, frozen=True):
    """What a connection has proved."""

    listener: str
    """The listener that it came in by."""
    host: str
    """The client's address."""
    mechanism: str
    """The SASL mechanism; empty where a certificate was the proof."""
    name: str
    """Who has logged in by SASL, the owner of a delegation token; or the distinguished name of a certificate."""
    certificate: bytes | None = None
    """The client's certificate, DER, where it was the proof."""


class PrincipalBuilder(Protocol):
    """What a class of the user's has to have; it is called with the node's properties."""

    def build(self, proof: Proof) -> str:
        """Return a principal as text: `User:alice`, `Group:readers`."""


class BuilderError(Exception):
    """A builder has failed, or what it has said is no principal; the text is for the log."""


def load(name: str, properties: Mapping[str, str]) -> Callable[[Proof], Principal] | None:
    """Return the builder that `module:Class` names, None for Kafka's default. It raises BuilderError.

    Raises what the import and the class raise.
    """
    if name == DEFAULT:
        return None
    module, _, attribute = name.partition(":")
    builder: PrincipalBuilder = getattr(import_module(module), attribute)(properties)

    def build(proof: Proof) -> Principal:
        try:
            said = builder.build(proof)
        except Exception as error:
            log.exception("the principal builder %s failed", name)
            raise BuilderError(f"the principal builder {name} failed: {type(error).__name__}") from None
        kind, colon, rest = said.partition(":") if isinstance(said, str) else ("", "", "")
        if not (kind and colon and rest):
            raise BuilderError(f"the principal builder {name} said {said!r}, expected a text as User:alice")
        return Principal(kind, rest)

    return build
