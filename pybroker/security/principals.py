"""Principals: who a request is from, as the connection has proved it.

Owns the name of a principal in Kafka's form. Must not know how a connection proves who it is: a PLAINTEXT listener asks
nobody, so its clients are all `ANONYMOUS`.

Source: Kafka's KafkaPrincipal.
"""

from __future__ import annotations

from typing import NamedTuple


class Principal(NamedTuple):
    """A user, or whatever else a listener authenticates; `User:alice` in text."""

    kind: str
    """Kafka's principal type; `User` for all that Kafka authenticates itself."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


SENDER = Principal("", "")
"""In an envelope: the principal of the node that sends it. A broker asks so for itself."""
ANONYMOUS = Principal("User", "ANONYMOUS")
"""Every client of a listener that authenticates nobody."""
