"""The result of a client's token: a challenge, a success, a failure, or work that ends in one of these.

Owns these types. A mechanism is a state machine without clock, randomness and I/O; such values are arguments of its
constructor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable


class Challenge(msgspec.Struct, frozen=True):
    """The exchange continues: these bytes are sent to the client, which responds."""

    token: bytes


class Proved(msgspec.Struct, frozen=True):
    """The client is authenticated."""

    name: str
    """The user."""
    token: bytes = b""
    """The final message to the client."""
    expires_ms: int | None = None
    """Expiry of the credential, ms since 1970; None for never."""
    by_token: bool = False
    """Whether a delegation token replaced the user's password."""


class Refused(msgspec.Struct, frozen=True):
    """The authentication failed, or a message is invalid. The exchange is over."""

    reason: str
    """For the broker's log, without secrets."""
    words: str | None = None
    """For the client; None where the reason could reveal which users exist."""


class Work(msgspec.Struct, frozen=True):
    """The step takes too long for the loop, or waits for others: a worker thread must call it."""

    decide: Callable[[], Challenge | Proved | Refused]
    """Executes the step. The exchange is not used meanwhile."""


Outcome = Challenge | Proved | Refused
"""A result without further work."""
Step = Outcome | Work
"""The result of a step."""


class Exchange(Protocol):
    """One client's exchange with one mechanism."""

    def step(self, token: bytes) -> Step:
        """Process the client's next token. Not called again after a success or a failure."""
