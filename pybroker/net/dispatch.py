"""The dispatch tables: the pipeline's interface of an API, and the choice of the API of a request.

Owns the choice of the table by listener, and Kafka's rule for versions outside the served range: the connection is
closed, except for ApiVersions. Its response then has version 0, so that a newer client can find a common version
(KIP-511). Must not import a handler: `pybroker.handlers` makes the entries, and `pybroker.node` passes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.net.native import ControlRequest


class Prepared(Protocol):
    """A request that this node has handled partly, before the rest is forwarded to the active controller."""

    @property
    def request(self) -> Any:
        """The request to forward; None if there is none."""

    def complete(self, response: Any) -> Any:
        """Return the complete response.

        `response` is the controller's response to the forwarded `request`; None if nothing was forwarded.
        """


class Api(Protocol):
    """The pipeline's interface of an API."""

    @property
    def name(self) -> str:
        """Kafka's name of the API."""

    @property
    def min_version(self) -> int:
        """The oldest version served."""

    @property
    def max_version(self) -> int:
        """The newest version served."""

    @property
    def request_type(self) -> type[Any]:
        """The message that a request is decoded to."""

    @property
    def forwarded(self) -> bool:
        """Whether the active controller handles the API, so that other nodes forward its requests."""

    def prepare(self, request: Any, context: Any) -> Prepared | None:
        """Handle a part of the request here, and return what to forward. Return None to forward the whole request."""

    def handle(self, request: Any, context: Any) -> Any:
        """Return the response, ready-made bytes for it, or an awaitable of either."""

    def failed(self, request: Any, context: Any, error: Exception) -> Any:
        """Return the response that reports an exception to the client."""

    def unsupported(self, context: Any) -> bytes | None:
        """Return the response to a version outside the served range, None to close the connection."""


class RefusedError(Exception):
    """The request is not served, and its connection is closed. The text is the reason."""


class Dispatch:
    """The APIs by key, separately for broker listeners and controller listeners."""

    def __init__(
        self,
        apis: Mapping[int, Api],
        controller_apis: Mapping[int, Api] | None = None,
        controller_listeners: frozenset[str] = frozenset(),
    ) -> None:
        self._apis = apis
        self._controller_apis = controller_apis or {}
        self._controller_listeners = controller_listeners

    def key(self, event: ControlRequest) -> int:
        """Return a number that identifies the API, its version and the role of the listener."""
        if self._controller_listeners and event.listener in self._controller_listeners:
            return ~event.api
        return event.api

    def find(self, event: ControlRequest) -> tuple[Api, bool]:
        """Return the API, and whether its version is served. Raises RefusedError for an API that is not served."""
        listener = event.listener
        apis = self._controller_apis if listener in self._controller_listeners else self._apis
        api = apis.get(event.api_key)
        if api is None:
            raise RefusedError(f"API key {event.api_key} is not served on listener {listener}")
        return api, api.min_version <= event.api_version <= api.max_version
