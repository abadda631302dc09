"""The APIs as listeners know them: facts come from the index, a handler is imported with its first request.

Owns when a handler is imported. The index (`pybroker.handlers.index`) says what a start, ApiVersions and metrics need,
so that a node starts without the handlers and the messages that nobody has asked for yet
(`pybroker.node.late_imports` has the rest soon).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.handlers.index import APIS
from pybroker.handlers.registry import definition
from pybroker.protocol.listener_role import ListenerRole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.handlers.registry import RegisteredApi
    from pybroker.protocol.schema import Message

_HANDLERS = __name__.rpartition(".")[0]


class ServedApi:
    """One API that this node answers; an `Api` of `pybroker.net.dispatch`."""

    __slots__ = ("_definition", "asked_by_brokers", "forwarded", "key", "max_version", "min_version", "module", "name")

    def __init__(
        self,
        key: int,
        name: str,
        module: str,
        min_version: int,
        max_version: int,
        *,
        forwarded: bool = False,
        asked_by_brokers: bool = False,
    ) -> None:
        """The arguments are those of `RegisteredApi`; `asked_by_brokers`: it needs CLUSTER_ACTION as a whole."""
        self.key = key
        self.name = name
        self.module = module
        self.min_version = min_version
        self.max_version = max_version
        self.forwarded = forwarded
        self.asked_by_brokers = asked_by_brokers
        self._definition: RegisteredApi | None = None

    @property
    def definition(self) -> RegisteredApi:
        """What the handler's module has registered; the first look imports the module."""
        found = self._definition
        if found is None:
            found = self._definition = definition(self.module)
        return found

    @property
    def request_type(self) -> type[Message]:
        """The message that a request is decoded to."""
        return self.definition.request_type

    def prepare(self, request: Any, context: Any) -> Any:
        """Return what is left of a request that is to be forwarded; None for all of it."""
        return self.definition.prepare(request, context)

    def handle(self, request: Any, context: Any) -> Any:
        """Return the response, ready-made bytes for it, or an awaitable of either."""
        return self.definition.handle(request, context)

    def failed(self, request: Any, context: Any, error: Exception) -> Any:
        """Return the response that reports an exception to the client."""
        return self.definition.failed(request, context, error)

    def unsupported(self, context: Any) -> bytes | None:
        """Return the answer to a version outside the range, None to close the connection."""
        return self.definition.unsupported(context)


def _served() -> dict[ListenerRole, dict[int, ServedApi]]:
    served: dict[ListenerRole, dict[int, ServedApi]] = {role: {} for role in ListenerRole}
    for key, name, module, min_version, max_version, roles, forwarded, asked_by_brokers in APIS:
        api = ServedApi(
            key, name, module, min_version, max_version, forwarded=forwarded, asked_by_brokers=asked_by_brokers
        )
        for role in roles:
            served[role][key] = api
    return served


_SERVED = _served()


def served_apis(role: ListenerRole = ListenerRole.BROKER) -> Mapping[int, ServedApi]:
    """Return the APIs that listeners of one role serve, by key in ascending order."""
    return _SERVED[role]


def api_names() -> dict[int, str]:
    """Return the names of the APIs of all roles, by key."""
    return {key: name for key, name, *_ in APIS}


def asked_by_brokers() -> frozenset[int]:
    """Return the keys of the brokers' APIs that need CLUSTER_ACTION as a whole: no client quota is about them."""
    return frozenset(api.key for api in served_apis().values() if api.asked_by_brokers)


def handlers_of(role: ListenerRole) -> list[str]:
    """Return the names of the modules that listeners of one role serve their APIs by."""
    return [f"{_HANDLERS}.{api.module}" for api in served_apis(role).values()]
