"""The controller as the rest of the broker sees it: asyncio in, committed and published metadata out.

Owns the meeting of machine, quorum and image. Every method returns after its records are committed and the image that
holds them is published. Must not know requests: handlers translate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pybroker.controller.cluster.events import (
        ConfigChange,
        ConfigResult,
        CreatedTopic,
        DeletedTopic,
        HeartbeatResult,
        NewTopic,
        RegisteredBroker,
        Result,
    )
    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.publishers import Publisher


class Controller:
    """A voter of the metadata quorum, and the leader's face."""

    @classmethod
    async def start(
        cls,
        directory: Path,
        *,
        node_id: int,
        cluster_id: str,
        num_partitions: int,
        replication_factor: int,
        validate_topic_configs: Callable[[Mapping[str, str]], str | None],
        publishers: Iterable[Publisher] = (),
        session_timeout_ms: int = 9000,
    ) -> Controller:
        """Open `directory`/__cluster_metadata-0, replay it, and lead the quorum of one.

        `num_partitions` and `replication_factor` stand for -1 in a new topic. `validate_topic_configs` returns what is
        wrong with a topic's own configurations, None when nothing is. Returns elected, replayed and published. Raises
        `OSError`, `CorruptMetadataLog` and `CorruptQuorumState`.
        """
        raise NotImplementedError

    async def stop(self) -> None:
        """Finish what is in work, then close the log. Later calls raise `NotController`."""
        raise NotImplementedError

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        raise NotImplementedError

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[CreatedTopic]:
        """Create topics; each succeeds or fails by itself, results in the order of `topics`."""
        raise NotImplementedError

    async def delete_topics(self, topics: Sequence[str | bytes]) -> list[DeletedTopic]:
        """Delete topics by name or 16-byte id; results in the order of `topics`."""
        raise NotImplementedError

    async def register_broker(
        self,
        broker_id: int,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, tuple[str, int]],
        security_protocols: Mapping[str, int],
        rack: str | None = None,
        log_dirs: tuple[bytes, ...] = (),
        features: Mapping[str, tuple[int, int]] | None = None,
        fenced: bool = True,
    ) -> RegisteredBroker:
        """Register a broker; `fenced=False` is for the broker inside this process, which sends no heartbeats."""
        raise NotImplementedError

    async def heartbeat(
        self, broker_id: int, broker_epoch: int, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> HeartbeatResult:
        """Note that a broker is alive; one that does not want to be fenced is unfenced."""
        raise NotImplementedError

    async def unregister_broker(self, broker_id: int) -> Result:
        """Forget a broker."""
        raise NotImplementedError

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> range:
        """Give a broker a block of 1000 producer ids; raises `StaleBrokerEpoch`."""
        raise NotImplementedError

    async def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        """Set and delete configurations of topics and brokers; each resource succeeds or fails by itself."""
        raise NotImplementedError

    async def update_features(self, levels: Mapping[str, int], *, validate_only: bool = False) -> Result:
        """Finalize feature levels, all or none."""
        raise NotImplementedError
