from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pybroker.controller.cluster.events import Result
from pybroker.controller.registration import ControllerRegistration, Reachable
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import EMPTY_IMAGE
from pybroker.metadata.image import ControllerRegistration as Known
from pybroker.protocol.errors import ErrorCode

REACHABLE = Reachable({"CONTROLLER": ("h", 9093)}, {"CONTROLLER": 0})
OLD = msgspec.structs.replace(EMPTY_IMAGE, features=msgspec.structs.replace(EMPTY_IMAGE.features, levels={}))
NEW = msgspec.structs.replace(
    EMPTY_IMAGE, features=msgspec.structs.replace(EMPTY_IMAGE.features, levels={"metadata.version": 25})
)


class UnreachableError(Exception):
    """Nobody leads."""


class Active:
    """The active controller."""

    def __init__(self) -> None:
        self.requested: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.responses: list[Result | Exception] = []

    async def register_controller(self, controller_id: int, **registration: Any) -> Result:
        await self.requested.put({"id": controller_id, **registration})
        response = self.responses.pop(0) if self.responses else Result()
        if isinstance(response, Exception):
            raise response
        return response


def image_with(incarnation_id: bytes) -> Any:
    known = Known(id=3, incarnation_id=incarnation_id, listeners={}, security_protocols={})
    return msgspec.structs.replace(NEW, cluster=msgspec.structs.replace(NEW.cluster, controllers={3: known}))


async def test_a_controller_registers_until_the_metadata_has_it() -> None:
    active = Active()
    active.responses = [UnreachableError("nobody leads"), Result(ErrorCode.NOT_CONTROLLER, "another leads")]
    registration = ControllerRegistration(3, lambda: active, UnreachableError, REACHABLE)
    registration.publish(MetadataDelta(NEW), image_with(b"an earlier run..."))
    requested = [await active.requested.get() for _ in range(3)]
    assert requested[0] == requested[2]
    assert (requested[0]["id"], requested[0]["listeners"]) == (3, {"CONTROLLER": ("h", 9093)})
    registration.publish(MetadataDelta(NEW), image_with(requested[0]["incarnation_id"]))
    assert registration._registering is None
    await registration.stop()


async def test_a_failure_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    active = Active()
    active.responses = [UnreachableError("nobody leads")] * 2
    registration = ControllerRegistration(3, lambda: active, UnreachableError, REACHABLE)
    registration.publish(MetadataDelta(NEW), NEW)
    for _ in range(3):
        await active.requested.get()
    assert caplog.text.count("not registered yet: nobody leads") == 1
    await registration.stop()


async def test_metadata_of_before_controllers_registered_has_none() -> None:
    registration = ControllerRegistration(3, Active, UnreachableError, REACHABLE)
    registration.publish(MetadataDelta(OLD), OLD)
    assert registration._registering is None
    await registration.stop()
