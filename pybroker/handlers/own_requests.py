"""Requests of this broker to itself: handlers are called as for requests on the inter-broker listener.

Owns the origin of such requests. Must not know any API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pybroker.protocol.codec import decode
from pybroker.protocol.header import response_prefix
from pybroker.protocol.messages import response_class

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.handlers.context import Contexts
    from pybroker.protocol.schema import Message

_NO_CONNECTION = -1
_LOOPBACK = "127.0.0.1"


class Api(Protocol):
    """The part of an API that is used here."""

    @property
    def max_version(self) -> int:
        """The newest version served."""

    def handle(self, request: Any, context: Any) -> Any:
        """Return the response, ready-made bytes for it, or an awaitable of either."""

    def failed(self, request: Any, context: Any, error: Exception) -> Any:
        """Return the response that reports an exception."""


class OwnOrigin(msgspec.Struct, frozen=True):
    """The origin of a request of this broker to itself."""

    api_key: int
    api_version: int
    client_id: str | None
    listener: str
    connection: int = _NO_CONNECTION
    local_host: str = _LOOPBACK
    local_port: int = 0
    peer_host: str = _LOOPBACK
    principal: tuple[str, str] | None = None
    peer_port: int = 0
    software: tuple[str, str] | None = None


class OwnRequests:
    """Serves requests of this broker to itself."""

    def __init__(self, apis: Mapping[int, Api], contexts: Contexts) -> None:
        self._apis = apis
        self._contexts = contexts

    async def respond(self, request: Message) -> Message:
        """Return the response of an API's handler, in the newest served version. `request` is not copied."""
        key = request.__message__.api_key
        assert key is not None
        api, config = self._apis[key], self._contexts.services.config
        origin = OwnOrigin(key, api.max_version, str(config.node_id), config.inter_broker_listener)
        context = self._contexts.build_own(origin)
        try:
            outcome: Any = api.handle(request, context)
            if not isinstance(outcome, bytes) and hasattr(outcome, "__await__"):
                outcome = await outcome
        except Exception as error:  # noqa: BLE001  # every exception of a handler becomes an error response
            outcome = api.failed(request, context, error)
        if isinstance(outcome, bytes):
            start = len(response_prefix(key, api.max_version))
            return decode(response_class(key), outcome, api.max_version, start)[0]
        response: Message = outcome
        return response
