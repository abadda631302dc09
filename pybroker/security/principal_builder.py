"""A user's principal builder: maps the authenticated identity of a connection to a principal.

Owns the loading of `principal.builder.class`, and the validation of its results. Kafka's default builder has no
class here: a name from SASL is a `User`, as is the result of `ssl.principal.mapping.rules` for a certificate. Must
not know authentication itself.

Called on the event loop, once for each authenticated connection, and again at each re-authentication. An exception
or an invalid principal closes the connection. A connection without authentication is `User:ANONYMOUS` without a
call.

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
    """The authenticated identity of a connection."""

    listener: str
    """The listener of the connection."""
    host: str
    """The client's address."""
    mechanism: str
    """The SASL mechanism; empty where the client authenticated by certificate."""
    name: str
    """The SASL user, the owner of a delegation token, or the distinguished name of a certificate."""
    certificate: bytes | None = None
    """The client's certificate in DER, where the client authenticated by it."""


class PrincipalBuilder(Protocol):
    """The interface of a user's class, which is instantiated with the node's properties."""

    def build(self, proof: Proof) -> str:
        """Return a principal as text: `User:alice`, `Group:readers`."""


class BuilderError(Exception):
    """A builder has raised, or returned an invalid principal. The message is for the log."""


def load(name: str, properties: Mapping[str, str]) -> Callable[[Proof], Principal] | None:
    """Return the builder `module:Class`, None for Kafka's default. It raises BuilderError.

    Raises the errors of the import and of the class.
    """
    if name == DEFAULT:
        return None
    module, _, attribute = name.partition(":")
    builder: PrincipalBuilder = getattr(import_module(module), attribute)(properties)

    def build(proof: Proof) -> Principal:
        try:
            reported = builder.build(proof)
        except Exception as error:
            log.exception("the principal builder %s failed", name)
            raise BuilderError(f"the principal builder {name} failed: {type(error).__name__}") from None
        kind, colon, rest = reported.partition(":") if isinstance(reported, str) else ("", "", "")
        if not (kind and colon and rest):
            raise BuilderError(
                f"the principal builder {name} returned {reported!r}, expected a string such as User:alice"
            )
        return Principal(kind, rest)

    return build
