"""Registration of APIs: a handler declares its messages and versions, and where it is served, where it is defined.

Owns the tables, one for each role of a listener, that listeners, ApiVersions, metrics and the documentation read. Must
not know any particular API.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import pybroker.handlers
from pybroker.handlers.errors import WireError, denial, wire_error
from pybroker.handlers.judging import judged
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

# Modules of this package that are no API. Every other module registers exactly one; two may have the key of one API,
# each for listeners of another role.
SUPPORT = frozenset(
    {
        "__init__",
        "acl_entries",
        "config_changes",
        "config_entries",
        "context",
        "encoded_topics",
        "errors",
        "judging",
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
    """One API that this node answers, whether here or in the data plane."""

    key: int
    name: str
    module: str
    """The handler's module in this package."""
    min_version: int
    max_version: int
    request_type: type[Message]
    requires: Requirements
    handle: Callable[[Any, RequestContext], Any]
    """The handler, behind what the whole request requires."""
    answer_failure: Callable[[Any, int, WireError], Any]
    answer_unsupported: Callable[[Any], bytes] | None
    in_data_plane: bool
    listeners: ListenerRole = ListenerRole.BROKER
    """The roles of the listeners that it is served on."""
    forwarded: bool = False
    """Whether the active controller decides: a broker whose node does not lead the quorum forwards it (KIP-590)."""
    judge_here: Callable[[Any, RequestContext], Any] | None = None
    """What a broker answers itself of a request that it forwards."""

    @property
    def is_of_brokers(self) -> bool:
        """Whether brokers alone send it: CLUSTER_ACTION is all that it needs. No client quota counts such requests."""
        return not isinstance(self.requires, NothingRequired) and all(
            one.operation is Operation.CLUSTER_ACTION for one in self.requires
        )

    def prepare(self, request: Any, context: RequestContext) -> Any:
        """Return what is left of a request that is to be forwarded (`pybroker.net.dispatch.Prepared`); None for all."""
        return None if self.judge_here is None else self.judge_here(request, context)

    def failed(self, request: Any, context: RequestContext, error: Exception) -> Any:
        """Return the response that reports an exception to the client."""
        return self.answer_failure(request, context.version, wire_error(error))

    def unsupported(self, context: RequestContext) -> bytes | None:
        """Return the answer to a version outside the range, None to close the connection."""
        return None if self.answer_unsupported is None else self.answer_unsupported(context)


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
    judge_here: Callable[[Any, RequestContext], Any] | None = None,
    judges_itself: bool = False,
    refused: Callable[[Any, int, WireError], Any] | None = None,
) -> Callable[[H], H]:
    """Register the decorated function as the handler of `request_type`, in all versions that the message declares.

    `max_version` leaves out later ones, which Kafka has marked unstable, `min_version` those that are not for these
    listeners.

    `requires` says which operations on which resources a request needs. What its whole needs is asked here, before the
    function is called. Items that may not be are answered by `refused`, which is `failed` where it is not given, and
    the function gets the others, unless it `judges_itself`; what an answer may name is for the function to ask about.

    `listeners` are the roles of the listeners that serve it, as Kafka's schema of the request has them. `forwarded`
    says that the active controller decides, so that a request which comes to any broker is forwarded there. Before
    that, `judge_here` answers what the broker alone knows: it returns what is left to forward, None for all of it.

    The function takes (request, context) and returns the response, ready-made bytes, or an awaitable of either.
    `failed` builds, from (request, version, error), the response that carries the error in every place where that
    version has room for one.
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
                handle=_authorized(handle if judges_itself else _judged(handle, required, refused or failed), required),
                answer_failure=failed,
                answer_unsupported=unsupported,
                in_data_plane=False,
                listeners=listeners,
                forwarded=forwarded,
                judge_here=judge_here,
            )
        )
        return handle

    return register


def _declared(requires: Sequence[Requirement] | NothingRequired) -> Requirements:
    return requires if isinstance(requires, NothingRequired) else tuple(requires)


def _judged(handle: Callable[[Any, RequestContext], Any], requires: Requirements, failed: Any) -> Any:
    return handle if isinstance(requires, NothingRequired) else judged(handle, requires, failed)


def _authorized(
    handle: Callable[[Any, RequestContext], Any], requires: Requirements
) -> Callable[[Any, RequestContext], Any]:
    """Put before a handler what the whole request requires."""
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


def answered_in_data_plane(request_type: type[Message], *, requires: Sequence[Requirement]) -> None:
    """Register an API whose requests on brokers' listeners never come up here, so that ApiVersions lists it."""

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
            answer_failure=unreachable,
            answer_unsupported=None,
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
    """Import every handler and return the APIs that listeners of one role serve, by key in ascending order."""
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
