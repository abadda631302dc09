"""A request in work: what the pipeline knows of it until it is answered, and how its API is served.

Owns the shapes alone; `pipeline` says what becomes of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from pybroker.machine.reply import Reply
    from pybroker.net.dispatch import Api
    from pybroker.net.native import ControlRequest
    from pybroker.protocol.native import Schema


class Way(NamedTuple):
    """How one version of an API is served."""

    api: Api
    version: int
    request: Schema
    is_flexible: bool
    response: Schema
    prefix: bytes
    """What precedes its responses."""
    has_throttle_time: bool
    """Whether its responses have room for the time that the client is to wait."""


class Work(msgspec.Struct, eq=False):
    """A request whose handler has not answered yet: a struct, as one is made for each request of a busy coordinator."""

    connection: int
    event: ControlRequest
    way: Way
    request: Any
    context: Any
    reply: Reply | None
    """What the handler has returned, as long as this wake-up may bring it; None when it is listened to, or awaited."""
    held: bool = False
    """Whether it has outlasted its wake-up: it waits for what others do, so it takes no room. Invariant: then the
    pipeline does not count it."""
    gone: bool = False
    """Whether its connection is closed."""
