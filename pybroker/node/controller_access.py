"""How the parts of a node reach the active controller: directly in this process while it leads, else by its listener.

Owns the choice of the channel by the node's roles, and where the active controller is found. Must not know what is
asked of it.
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
    """Where a node has the metadata from: its own controller, or an observer of another node's."""

    @property
    def leader_id(self) -> int:
        """Node id of the quorum's leader as far as it is known here, -1 for none."""

    @property
    def leader_endpoint(self) -> tuple[str, int] | None:
        """Where the leader's listener of controllers is, as far as the quorum says it here."""

    @property
    def is_leader(self) -> bool:
        """Whether this node is the active controller."""


class ControllerAccess:
    """The way of one node to the active controller."""

    channels: Channels | None
    """None for a single node, whose controller is nowhere but here."""

    def __init__(self, foundation: Foundation, source: MetadataSource, local: LocalChannel | None) -> None:
        """`local` is the channel to this node's controller, None where it has none."""
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
        """Let a broker's partitions say up to where the metadata is in force, and wait for them."""
        self._offset_in_force, self._published = offset_in_force, published

    def _find_leader(self) -> Endpoint | None:
        """Return the controller listener of the quorum's leader, as the configuration or its registration has it."""
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
    """Wait for nothing: the image is all that follows the metadata here."""
