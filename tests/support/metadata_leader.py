"""A controller in this process whose listener serves the metadata log through the handlers of a node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pybroker.config.quorum import QuorumVoter
from pybroker.controller.service import Controller
from pybroker.handlers.registry import registered_apis
from pybroker.machine.reply import Reply
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages import request_class
from tests.support.scripted_controller import Response, ScriptedController

FETCH, FETCH_SNAPSHOT = 1, 59
CLUSTER_ID = "c"


def context_of(voter: Controller | None, voters: tuple[QuorumVoter, ...] = (), version: int = 17) -> Any:
    """Return the context of the handlers of the metadata log."""
    config = SimpleNamespace(quorum_voters=voters)
    services = SimpleNamespace(voter=voter, cluster_id=CLUSTER_ID, config=config)
    return SimpleNamespace(services=services, version=version, authorizer=None)


def response_of(key: int, context: Any) -> Response:
    """Return the handler of an API as a function for `ScriptedController`."""
    api = registered_apis(ListenerRole.CONTROLLER)[key]

    async def respond(request: Any) -> Any:
        assert type(request) is request_class(key)
        try:
            outcome = api.handle(request, context)
            return await outcome if isinstance(outcome, Reply) or hasattr(outcome, "__await__") else outcome
        except Exception as error:  # noqa: BLE001 - as the pipeline does
            return api.failed(request, context, error)

    return respond


def listener_of(voter: Controller | None, voters: tuple[QuorumVoter, ...] = (), port: int = 0) -> ScriptedController:
    """Return the listener of a controller, an async context manager."""
    context = context_of(voter, voters)
    return ScriptedController({key: response_of(key, context) for key in (FETCH, FETCH_SNAPSHOT)}, port=port)
