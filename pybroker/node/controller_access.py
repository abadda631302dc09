"""Access of a node's parts to the active controller: by calls if it is in this process, else over its listener.

Owns the choice of the channel by the node's roles, and the lookup of the active controller's endpoint. Must not know
the requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pybroker.broker.shut_down import Stage
from pybroker.config.endpoint import Endpoint
from pybroker.controller.channels import build_channels, build_patience
from pybroker.controller.forwarding_channel import ForwardingChannel
from pybroker.controller.switching_channel import SwitchingChannel
from pybroker.node.measuring import MeasuredMetadata

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.controller.channels import Channels
    from pybroker.controller.forwarding_channel import ForwardingChannel
    from pybroker.controller.local_channel import LocalChannel
    from pybroker.node.foundation import Foundation


class MetadataSource(MeasuredMetadata, Protocol):
    """The source of a node's metadata: its own controller, or an observer."""

    @property
    def leader_id(self) -> int:
        """Node id of the quorum's leader as known to this node, -1 for none."""

    @property
    def leader_endpoint(self) -> tuple[str, int] | None:
        """Host and port of the leader's controller listener as known to this node's quorum client, None if unknown."""

    @property
    def is_leader(self) -> bool:
        """Whether this node is the active controller."""


class ControllerAccess:
    """One node's channel to the active controller."""

    channels: Channels | None
    """Connections to controllers; None for a single node, which has the only controller."""

    def __init__(self, foundation: Foundation, source: MetadataSource, local: LocalChannel | None) -> None:
        """`local` is the channel to this node's controller, None without one."""
        self._config = foundation.config
        self.source = source
        self._offset_in_force: Callable[[], int] = lambda: source.image.offset
        self._published: Callable[[int], Awaitable[None]] = _at_once
        self.channels = None
        remote = None
        if local is None or not foundation.config.is_single:
            remote = self._build_remote(foundation)
        self.channel = SwitchingChannel(local, remote, lambda: source.leader_id, lambda: source.is_leader)

    def _build_remote(self, foundation: Foundation) -> ForwardingChannel:
        channels = self.channels = build_channels(foundation.config, self._find_leader, foundation.outbound.controllers)
        foundation.shut_down.add(Stage.REPORTS, channels, channels.close)
        return ForwardingChannel(
            foundation.cluster_id,
            channels.heartbeats,
            channels.requests,
            build_patience(foundation.config),
            metadata_offset=lambda: self._offset_in_force(),
            published=lambda offset: self._published(offset),
        )

    def follow(self, offset_in_force: Callable[[], int], published: Callable[[int], Awaitable[None]]) -> None:
        """Set the functions that return the metadata offset applied by the partitions, and that wait for an offset."""
        self._offset_in_force, self._published = offset_in_force, published

    def _find_leader(self) -> Endpoint | None:
        """Return the leader's controller listener, from the configuration, the quorum or its registration."""
        leader = self.source.leader_id
        for voter in self._config.quorum_voters:
            if voter.node_id == leader:
                return Endpoint("CONTROLLER", voter.host, voter.port)
        if self.source.leader_endpoint is not None:
            return Endpoint("CONTROLLER", *self.source.leader_endpoint)
        registered = self.source.image.cluster.controllers.get(leader)
        for name in self._config.controller_listener_names:
            if registered is not None and name.upper() in registered.listeners:
                return Endpoint(name.upper(), *registered.listeners[name.upper()])
        return None


async def _at_once(_offset: int) -> None:
    """Do not wait: without a broker, an offset is applied with its image."""
