"""The dispatch tables: what the pipeline needs to know of an API, and the decision which requests are served.

Owns which table a listener's requests are looked up in, and Kafka's rule for versions outside the served range: the
connection is closed, except for ApiVersions, which is answered in version 0 so that a newer client can find a common
version (KIP-511). Must not import a handler; the entries are made in `pybroker.handlers`, injected by `pybroker.node`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.net.native import ControlRequest


class Prepared(Protocol):
    """A request of which this node has answered a part before the active controller sees the rest."""

    @property
    def request(self) -> Any:
        """What the active controller is asked; None for nothing."""

    def complete(self, response: Any) -> Any:
        """Return the whole response, of the controller's to the rest; None where it was not asked."""


class Api(Protocol):
    """One API as the pipeline sees it."""

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
        """Whether the active controller decides, so that a node which does not lead the quorum forwards requests."""

    def prepare(self, request: Any, context: Any) -> Prepared | None:
        """Return what is left of a request that is to be forwarded; None for all of it."""

    def handle(self, request: Any, context: Any) -> Any:
        """Return the response, ready-made bytes for it, or an awaitable of either."""

    def failed(self, request: Any, context: Any, error: Exception) -> Any:
        """Return the response that reports an exception to the client."""

    def unsupported(self, context: Any) -> bytes | None:
        """Return the answer to a version outside the range, None to close the connection."""


class RefusedError(Exception):
    """The request is not served; the text says why and the connection is closed."""


class Dispatch:
    """The APIs by key, those of brokers' listeners and those of controllers'."""

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
        """Return a number for API, version and role of the listener: what is looked up for one holds for its equals."""
        if self._controller_listeners and event.listener in self._controller_listeners:
            return ~event.api
        return event.api

    def find(self, event: ControlRequest) -> tuple[Api, bool]:
        """Return the API and whether its version is served; raises RefusedError for an API that is not served."""
        listener = event.listener
        apis = self._controller_apis if listener in self._controller_listeners else self._apis
        api = apis.get(event.api_key)
        if api is None:
            raise RefusedError(f"API key {event.api_key} is not served on listener {listener}")
        return api, api.min_version <= event.api_version <= api.max_version
