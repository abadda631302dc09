"""What a mechanism makes of a client's token: a challenge, a proof, a refusal, or work that ends in one of these.

Owns these shapes. A mechanism is a machine that reads no clock, rolls no dice and does no I/O; what it needs of either
it is made with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable


class Challenge(msgspec.Struct, frozen=True):
    """The exchange goes on: this is for the client, which answers it."""

    token: bytes


class Proved(msgspec.Struct, frozen=True):
    """The client is who it says."""

    name: str
    """The user."""
    token: bytes = b""
    """The last word of the exchange, for the client."""
    expires_ms: int | None = None
    """When the credential ends, ms since 1970; None for never."""
    by_token: bool = False
    """Whether a delegation token stood for the user's password."""


class Refused(msgspec.Struct, frozen=True):
    """The client is not who it says, or says it wrongly. The exchange is over."""

    reason: str
    """For the broker's log, without anything secret."""
    words: str | None = None
    """For the client; None for those that say nothing of why, as the reason could say which users there are."""


class Work(msgspec.Struct, frozen=True):
    """What is decided takes too long for the loop, or waits for others: a worker thread is to call this."""

    decide: Callable[[], Challenge | Proved | Refused]
    """Makes the step. Nobody uses the exchange meanwhile."""


Outcome = Challenge | Proved | Refused
"""What is sure."""
Step = Outcome | Work
"""What an exchange answers."""


class Exchange(Protocol):
    """One client's exchange by one mechanism."""

    def step(self, token: bytes) -> Step:
        """Take the client's next token. After a proof or a refusal it is not called again."""
