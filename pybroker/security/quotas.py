"""The one place that says how long a client is asked to wait, for the requests that Python answers.

Owns the answer of a broker without quotas, which is every broker yet: not at all. Must not know handlers or
connections; the pipeline puts the time into the answer, and so does Metadata's handler, whose answers are made of
encoded parts. Produce, Fetch and most of ApiVersions are answered in the data plane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pybroker.security.principals import Principal


class Client(Protocol):
    """Who is asked to wait: what a client quota can name (KIP-13, KIP-55)."""

    @property
    def principal(self) -> Principal:
        """The principal that the connection has proved."""

    @property
    def client_id(self) -> str | None:
        """What the client calls itself."""


def throttle_time_ms(_client: Client) -> int:
    """Return the milliseconds that a client is to wait before its next request: the `throttle_time_ms` of answers."""
    return 0
