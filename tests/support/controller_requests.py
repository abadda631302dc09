"""Calls the handlers of a controller without a data plane."""

from __future__ import annotations

from typing import Any, NamedTuple

from pybroker.config.broker import BrokerConfig
from pybroker.controller.failure_detector import build_failure_detector
from pybroker.controller.switching_channel import SwitchingChannel
from pybroker.handlers.context import ControllerContext, ControllerServices
from pybroker.handlers.registry import registered_apis
from pybroker.machine.slices import Slices
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.schema import Message
from pybroker.security.mutation_quotas import MutationQuotas
from tests.support.controllers import Running

CLUSTER_ID = "c"


class Origin(NamedTuple):
    """The request metadata and connection that a handler reads from its context."""

    api_key: int
    api_version: int
    listener: str = "CONTROLLER"
    connection: int = 7
    client_id: str | None = "test"
    local_host: str = "127.0.0.1"
    local_port: int = 9093
    peer_host: str = "127.0.0.1"
    principal: tuple[str, str] | None = None
    peer_port: int = 40_000
    software: tuple[str, str] | None = None


class Published:
    """Replaces the publisher of a broker: every metadata offset counts as published."""

    async def published(self, _offset: int) -> None:
        return

    def failure_of(self, _topic: str) -> str | None:
        return None


class Requests:
    """Calls the handlers of one controller."""

    def __init__(self, one: Running, **services: Any) -> None:
        given: dict[str, Any] = dict.fromkeys(ControllerServices.__struct_fields__) | {
            "config": BrokerConfig({}),
            "cluster_id": CLUSTER_ID,
            "image": lambda: one.controller.image,
            "controller": SwitchingChannel(
                one.channel, None, lambda: one.controller.leader_id, lambda: one.controller.is_leader
            ),
            "voter": one.controller,
            "failure_detector": build_failure_detector(one.controller, "PLAINTEXT", 0),
            "mutations": MutationQuotas(11, 1),
            "publisher": Published(),
            "slices": Slices(),
        }
        self.services = ControllerServices(**given | services)

    async def query(self, request: Message, version: int | None = None) -> Any:
        """Return the response to a request in `version`, by default the newest."""
        spec = type(request).__message__
        origin = Origin(spec.api_key, spec.versions.last if version is None else version)
        context = ControllerContext(self.services, origin, self.services.image(), origin.api_version)
        api = registered_apis(ListenerRole.CONTROLLER)[spec.api_key]
        try:
            outcome = api.handle(request, context)
            return await outcome if hasattr(outcome, "__await__") else outcome
        except Exception as error:  # noqa: BLE001  # as the pipeline does
            return api.failed(request, context, error)
