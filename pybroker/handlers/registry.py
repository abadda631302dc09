"""Registration of APIs: a handler declares its messages, versions and listeners where it is defined.

Owns the tables, one for each listener role. Listeners, ApiVersions, metrics and the documentation read them. Must not
know any particular API.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pybroker.handlers
from pybroker.handlers.authorizing import checked
from pybroker.handlers.errors import WireError, denial, wire_error
from pybroker.protocol.listener_role import ListenerRole
from pybroker.security import authorizer
from pybroker.security.operations import Operation
from pybroker.security.requirements import NothingRequired, Scope, actions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pybroker.handlers.context import RequestContext
    from pybroker.protocol.schema import Message
    from pybroker.security.requirements import Requirement, Requirements

H = TypeVar("H", bound="Callable[[Any, Any], Any]")

# Modules of this package without an API. Every other module registers exactly one API. Two modules may have the same
# key, for listeners of different roles.
SUPPORT = frozenset(
    {
        "__init__",
        "acl_entries",
        "config_changes",
        "config_entries",
        "context",
        "described_groups",
        "encoded_topics",
        "errors",
        "authorizing",
        "leaders",
        "metadata_log",
        "mutations",
        "own_requests",
        "registry",
        "telemetry_client",
        "token_requests",
        "topic_metadata",
    }
)


class RegisteredApi(NamedTuple):
    """One API of this node, served by a handler or by the data plane."""

    key: int
    name: str
    module: str
    """The handler's module in this package."""
    min_version: int
    max_version: int
    request_type: type[Message]
    requires: Requirements
    handle: Callable[[Any, RequestContext], Any]
    """The handler, wrapped by the authorization of the whole request."""
    respond_failure: Callable[[Any, int, WireError], Any]
    respond_unsupported: Callable[[Any], bytes] | None
    in_data_plane: bool
    listeners: ListenerRole = ListenerRole.BROKER
    """The roles of the listeners that serve it."""
    forwarded: bool = False
    """Whether the active controller handles it, so that other nodes forward it (KIP-590)."""
    authorize_here: Callable[[Any, RequestContext], Any] | None = None
    """Handles the parts of a forwarded request that only the broker can."""

    @property
    def is_of_brokers(self) -> bool:
        """Whether only brokers send it: it requires only CLUSTER_ACTION. Client quotas do not count such requests."""
        return not isinstance(self.requires, NothingRequired) and all(
            one.operation is Operation.CLUSTER_ACTION for one in self.requires
        )

    def prepare(self, request: Any, context: RequestContext) -> Any:
        """Return the part of a request to be forwarded (`pybroker.net.dispatch.Prepared`); None to forward it whole."""
        return None if self.authorize_here is None else self.authorize_here(request, context)

    def failed(self, request: Any, context: RequestContext, error: Exception) -> Any:
        """Return the response that reports an exception to the client."""
        return self.respond_failure(request, context.version, wire_error(error))

    def unsupported(self, context: RequestContext) -> bytes | None:
        """Return the response to a version outside the served range, None to close the connection."""
        return None if self.respond_unsupported is None else self.respond_unsupported(context)


_apis: dict[ListenerRole, dict[int, RegisteredApi]] = {role: {} for role in ListenerRole}
_by_module: dict[str, RegisteredApi] = {}


def handles(
    request_type: type[Message],
    *,
    requires: Sequence[Requirement] | NothingRequired,
    failed: Callable[[Any, int, WireError], Any],
    unsupported: Callable[[Any], bytes] | None = None,
    min_version: int | None = None,
    max_version: int | None = None,
    listeners: ListenerRole = ListenerRole.BROKER,
    forwarded: bool = False,
    authorize_here: Callable[[Any, RequestContext], Any] | None = None,
    authorizes_itself: bool = False,
    refused: Callable[[Any, int, WireError], Any] | None = None,
) -> Callable[[H], H]:
    """Register the decorated function as the handler of `request_type`, in all declared versions.

    `max_version` excludes later versions, which are unstable in Kafka, `min_version` those that are not for these
    listeners.

    `requires` declares the required operations on resources. Requirements of the whole request are checked before the
    function is called. Unauthorized items get their errors by `refused` (default: `failed`), and the function receives
    the others, unless it `authorizes_itself`. The function itself checks which resources a response may contain.

    `listeners` are the roles of the listeners that serve it, as in Kafka's schema of the request. With `forwarded`,
    brokers forward the request to the active controller. Before that, `authorize_here` handles the parts that only the
    broker can: it returns the rest to forward, None for the whole request.

    The function takes (request, context) and returns the response, ready-made bytes, or an awaitable of either.
    `failed` builds, from (request, version, error), the response with the error in every error field of that version.
    """

    def register(handle: H) -> H:
        declared = request_type.__message__.versions
        required = _declared(requires)
        _register(
            RegisteredApi(
                key=request_type.__message__.api_key,
                name=_name(request_type),
                module=_module(handle),
                min_version=declared.first if min_version is None else min_version,
                max_version=declared.last if max_version is None else max_version,
                request_type=request_type,
                requires=required,
                handle=_authorized(
                    handle if authorizes_itself else _checked(handle, required, refused or failed), required
                ),
                respond_failure=failed,
                respond_unsupported=unsupported,
                in_data_plane=False,
                listeners=listeners,
                forwarded=forwarded,
                authorize_here=authorize_here,
            )
        )
        return handle

    return register


def _declared(requires: Sequence[Requirement] | NothingRequired) -> Requirements:
    return requires if isinstance(requires, NothingRequired) else tuple(requires)


def _checked(handle: Callable[[Any, RequestContext], Any], requires: Requirements, failed: Any) -> Any:
    return handle if isinstance(requires, NothingRequired) else checked(handle, requires, failed)


def _authorized(
    handle: Callable[[Any, RequestContext], Any], requires: Requirements
) -> Callable[[Any, RequestContext], Any]:
    """Return the handler with the authorization of the whole request."""
    if isinstance(requires, NothingRequired):
        return handle
    of_whole = tuple(needed for needed in requires if needed.scope is Scope.REQUEST and needed.when is None)
    if not of_whole:
        return handle

    def handle_authorized(request: Any, context: RequestContext) -> Any:
        if context.authorizer is None:
            return handle(request, context)
        refused = authorizer.denied(context, actions_of(of_whole, request, context.version))
        if refused:
            raise denial(refused[0].resource_type)
        return handle(request, context)

    return handle_authorized


def responded_in_data_plane(request_type: type[Message], *, requires: Sequence[Requirement]) -> None:
    """Register an API whose requests on broker listeners are served by the data plane, so that ApiVersions lists it."""

    def unreachable(*_: Any) -> Any:
        raise AssertionError(f"{request_type.__name__} is answered in the data plane")

    declared = request_type.__message__.versions
    _register(
        RegisteredApi(
            key=request_type.__message__.api_key,
            name=_name(request_type),
            module=_snake(_name(request_type)),
            min_version=declared.first,
            max_version=declared.last,
            request_type=request_type,
            requires=_declared(requires),
            handle=unreachable,
            respond_failure=unreachable,
            respond_unsupported=None,
            in_data_plane=True,
        )
    )


def _name(request_type: type[Message]) -> str:
    return request_type.__name__.removesuffix("Request")


def _module(handle: Callable[..., Any]) -> str:
    return handle.__module__.rsplit(".", 1)[-1]


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")


def _register(api: RegisteredApi) -> None:
    for role in api.listeners:
        if api.key in _apis[role]:
            raise AssertionError(f"API key {api.key} is registered twice for {role.name} listeners")
        _apis[role][api.key] = api
    _by_module[api.module] = api


def handler_modules() -> list[str]:
    """Return the names of the modules that define an API."""
    names = (name.removesuffix(".py") for name in os.listdir(pybroker.handlers.__path__[0]) if name.endswith(".py"))
    return sorted(name for name in names if name not in SUPPORT)


@cache
def registered_apis(role: ListenerRole = ListenerRole.BROKER) -> Mapping[int, RegisteredApi]:
    """Import every handler and return the APIs that listeners of a role serve, sorted by key."""
    for name in handler_modules():
        import_module(f"pybroker.handlers.{name}")
    return dict(sorted(_apis[role].items()))


def definition(module: str) -> RegisteredApi:
    """Import one module of this package, and return the API that it registers."""
    import_module(f"pybroker.handlers.{module}")
    return _by_module[module]


def every_api() -> list[RegisteredApi]:
    """Import every handler and return the APIs of all roles, each once, by key."""
    return sorted({api.module: api for role in ListenerRole for api in registered_apis(role).values()}.values())


def api_names() -> dict[int, str]:
    """Return the names of the APIs of all roles, by key."""
    return {api.key: api.name for api in every_api()}
