"""How requests are served: the services that handlers find, and the pipeline that brings requests to them.

Owns what of a broker's parts a request can meet, and which part each of the data plane's events goes to. Must not
decide in which order parts are built: that is the node's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pybroker.broker.producer_ids import ProducerIds
from pybroker.handlers.context import Services
from pybroker.handlers.encoded_topics import EncodedTopics
from pybroker.machine.slices import Slices
from pybroker.net.listeners import advertised
from pybroker.net.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.broker.failures import Failures
    from pybroker.broker.live_config import LiveConfig
    from pybroker.broker.registration import Registration
    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.local_channel import LocalChannel
    from pybroker.controller.service import Controller
    from pybroker.coordinator.group.service import GroupCoordinator
    from pybroker.handlers.context import Contexts, RequestContext
    from pybroker.net.dispatch import Dispatch
    from pybroker.net.listeners import OpenListener
    from pybroker.net.native import ControlRequest, DataPlane, UnresolvedRequest
    from pybroker.replica.publisher import PartitionPublisher
    from pybroker.storage.partitions import Partitions
    from pybroker.storage.upkeep import Upkeep


class Parts(Protocol):
    """The parts of a broker that requests and events meet."""

    config: BrokerConfig
    data_plane: DataPlane
    listeners: tuple[OpenListener, ...]
    live: LiveConfig
    controller: Controller
    channel: LocalChannel
    registration: Registration
    groups: GroupCoordinator
    partitions: Partitions
    publisher: PartitionPublisher
    upkeep: Upkeep

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""

    @property
    def failures(self) -> Failures:
        """What the broker does not survive."""


def build_services(parts: Parts) -> Services:
    """Return what handlers find in their context."""
    controller = parts.controller
    return Services(
        config=parts.live.current,
        cluster_id=parts.cluster_id,
        image=lambda: controller.image,
        controller=parts.channel,
        groups=parts.groups,
        partitions=parts.partitions,
        moves=parts.upkeep.moves,
        publisher=parts.publisher,
        producer_ids=ProducerIds(parts.registration.allocate_producer_ids),
        retention=parts.upkeep.retention,
        slices=Slices(),
        topics=EncodedTopics(),
        advertised=advertised(parts.listeners),
    )


def build_pipeline(
    parts: Parts,
    dispatch: Dispatch,
    contexts: Contexts,
    intercepted: Callable[[ControlRequest, RequestContext], None],
) -> Pipeline:
    """Return the pipeline, not started; `intercepted` decides about the requests that the data plane intercepts."""
    controller, groups, publisher, upkeep = parts.controller, parts.groups, parts.publisher, parts.upkeep
    failures = parts.failures

    async def decide(_request: UnresolvedRequest) -> None:
        # Topics that the image has are in the table once it is published; for all others the table's word holds.
        await publisher.published(controller.image.offset)

    return Pipeline(
        parts.data_plane,
        dispatch,
        new_context=contexts.build,
        decide=decide,
        directory_failed=lambda event: failures.lose_directory(event.directory, event.error),
        exhausted=lambda event: upkeep.open_files.step_exhausted(event.error),
        segment_rolled=lambda event: upkeep.flush_rolled(event.topic, event.index),
        append_settled=lambda event: groups.append_settled(event.ticket),
        max_in_work=parts.config.queued_max_requests,
        max_elements=parts.config.socket_request_max_elements,
        draining=groups.expect_step,
        drained=groups.step,
        intercepted=lambda request: intercepted(request, contexts.build(request)),
    )
