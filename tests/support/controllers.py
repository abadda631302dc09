"""Controllers of single-voter quorums, and the channels to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from pybroker.controller.cluster.settings import ClusterSettings
from pybroker.controller.local_channel import LocalChannel
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.service import Controller
from pybroker.metadata.features import SUPPORTED_FEATURES
from pybroker.metadata.image import MetadataImage
from pybroker.metadata.publishers import Publisher
from pybroker.protocol.errors import ErrorCode
from tests.support.config_rules import BadIsWrong

CLUSTER = ClusterSettings(2, 1, 9000, BadIsWrong())


class Running(NamedTuple):
    """A controller and the channel to it."""

    controller: Controller
    channel: LocalChannel

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    async def register(self, broker_id: int = 1) -> int:
        """Register and unfence a broker. Returns its broker epoch."""
        result = await self.channel.register_broker(
            broker_id,
            incarnation_id=b"i" * 16,
            listeners={"PLAINTEXT": ("h", 9092)},
            security_protocols={"PLAINTEXT": 0},
            features=SUPPORTED_FEATURES,
            fenced=False,
        )
        assert result.error_code is ErrorCode.NONE
        return result.broker_epoch


def build(directory: Path, voters: tuple[int, ...] = (1,), on_failure: Any = None, **settings: Any) -> Running:
    """Return a controller of node 1 that is not open. `settings` are those of the cluster machine."""
    quorum = QuorumSettings(directory, "c", 1, voters)
    controller = Controller(CLUSTER._replace(**settings), quorum, on_failure)
    return Running(controller, LocalChannel(controller))


@asynccontextmanager
async def running(directory: Path, publishers: Iterable[Publisher] = (), **settings: Any) -> AsyncIterator[Running]:
    """Yield a running active controller. Stops it at the end."""
    built = build(directory, **settings)
    await built.controller.open([*publishers, built.channel.former_isr])
    try:
        await built.controller.start()
        yield built
    finally:
        await built.controller.stop()
