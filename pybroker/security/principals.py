"""Principals: the authenticated identity of a client.

Owns the name of a principal in Kafka's form. Must not know authentication. A PLAINTEXT listener does not
authenticate, so its clients are all `ANONYMOUS`.

Source: Kafka's KafkaPrincipal.
"""

from __future__ import annotations

from typing import NamedTuple


class Principal(NamedTuple):
    """A user, or another principal type; the text is `User:alice`."""

    kind: str
    """Kafka's principal type; `User` for all identities that Kafka authenticates itself."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


SENDER = Principal("", "")
"""The principal of a node that sends an Envelope request for itself."""
ANONYMOUS = Principal("User", "ANONYMOUS")
"""Every client of a listener without authentication."""
