"""The interface of the group coordinator: submits events of groups, and completes their replies on commit.

Owns the specifics of groups in the runtime: the partition of a group, machines with a `GroupContext`, and the deletion
of topics. The runtime owns elections, loading, appends and replies. Must not know requests' envelopes, nor what a
partition is: the caller provides logs.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, cast

from pybroker.coordinator.group.context import GroupContext
from pybroker.coordinator.group.events import CompleteTransaction, TopicsDeleted
from pybroker.coordinator.group.group_change import GroupChange
from pybroker.coordinator.group.log import GroupRecordCodec, fault_effect
from pybroker.coordinator.group.offsets import forgetting_key
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.runtime.commits import CommitWaits
from pybroker.coordinator.runtime.errors import NotCoordinatorError
from pybroker.coordinator.runtime.kind import CoordinatorKind, RuntimeSettings
from pybroker.coordinator.runtime.partitioning import partition_of
from pybroker.coordinator.runtime.service import CoordinatorRuntime
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.machine.parts import parts
from pybroker.metadata.image import EMPTY_IMAGE
from pybroker.storage.errors import NotLeaderError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.settings import GroupSettings
    from pybroker.coordinator.runtime.log import TransactionalLog
    from pybroker.machine.clock import Clock
    from pybroker.machine.reply import Reply
    from pybroker.machine.slices import Sliced
    from pybroker.metadata.image import MetadataImage, TopicsImage

log = logging.getLogger("pybroker.coordinator.group")


class GroupCoordinator:
    """The coordinators of groups on this broker. Used from one event loop."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        node_id: int,
        partitions: int,
        codec: int,
        commit_timeout_ms: int,
        load_bytes: int,
        open_log: Callable[[int], TransactionalLog | None],
        commits: CommitWaits | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`partitions` is the number of partitions of the topic, `open_log` returns the log of one that this broker
        leads. A client that waits longer than `commit_timeout_ms` for a commit receives COORDINATOR_NOT_AVAILABLE.
        `commits` is shared by all runtimes of a data plane; None if there is no other runtime.
        """
        # The runtime references the context, not the coordinator: a cycle would keep logs open until a collection.
        self._context = GroupContext(settings)
        self._topics = EMPTY_IMAGE.topics
        self._clock = clock
        # The last logged reason why the topic could not be created.
        self._refusal: str | None = None
        commits = commits or CommitWaits()
        group_codec = GroupRecordCodec(codec)
        self._runtime = runtime = CoordinatorRuntime(
            CoordinatorKind(
                topic=OFFSETS_TOPIC,
                entries="groups",
                partition_of=partition_of,
                build_machine=self._context.build_machine,
                codec=group_codec,
                write=group_codec.write,
                appended=_log_rebalances,
                fault_effect=fault_effect,
            ),
            RuntimeSettings(
                node_id=node_id, partitions=partitions, commit_timeout_ms=commit_timeout_ms, load_bytes=load_bytes
            ),
            open_log=open_log,
            commits=commits,
            clock=clock,
        )
        # The runtime's own methods, which saves a call per request.
        self.partition_for = runtime.partition_for
        self.submit = runtime.submit
        self.submit_to = runtime.submit_to
        self.submit_all = runtime.submit_all
        self.expect_step = runtime.expect_step
        self.step = runtime.step
        self.append_completed = commits.append_completed

    def follow(self, image: MetadataImage) -> None:
        """Apply a newer image, whose partitions are open here: load, resign, and delete offsets of deleted topics."""
        before, self._topics = self._topics, image.topics
        self._context.follow(image)
        self._runtime.follow(image)
        if image.topics is not before:
            self._forget_deleted(before, image.topics)

    def begin_verification(self, group_id: str, producer_id: int, producer_epoch: int, *, bumps_epoch: bool) -> int:
        """Return the guard for the transaction's first offset commit of a group, appended once the transaction
        coordinator has confirmed that the group's partition is part of it; 0 if the transaction is open there already.

        `bumps_epoch`: each transaction has an epoch of its own. Raises a `CoordinatorError` if this broker does not
        coordinate the group, `InvalidProducerEpochError` for an outdated epoch.
        """
        log = cast("TransactionalLog", self._runtime.log_of(self.partition_for(group_id)))
        now_ms = self._clock.wall_ms()
        try:
            return log.begin_verification(producer_id, producer_epoch, bumps_epoch=bumps_epoch, now_ms=now_ms)
        except NotLeaderError as error:
            raise NotCoordinatorError(str(error)) from None

    def complete_transaction(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        transaction_version: int = 0,
    ) -> Reply:
        """End a producer's transaction in a partition of the topic: append the marker, and apply or drop the offsets
        of the transaction. The reply is None once the marker is committed.

        Raises a `CoordinatorError` if this broker does not coordinate it. The reply may fail with one, or with a
        `StorageError` if the log rejects the marker.
        """
        event = CompleteTransaction(producer_id, producer_epoch, coordinator_epoch, committed, transaction_version)
        return self._runtime.submit_to(partition, event)

    def reconfigure(self, settings: GroupSettings) -> None:
        """Apply the broker's changed configuration to later decisions."""
        self._context.reconfigure(settings)
        for machine in self._runtime.machines():
            machine.state.settings = settings

    def states(self) -> Counter[tuple[str, str]]:
        """Count the groups by protocol and state. Safe to call from any thread."""
        machines = list(self._runtime.machines())
        groups = [group for machine in machines for group in list(machine.state.groups.values())]
        return Counter((group.type_name, group.state_name) for group in groups)

    async def loaded(self) -> None:
        """Wait until no coordinator is loading."""
        await self._runtime.loaded()

    async def close(self) -> None:
        """Resign from all partitions: waiting clients get an error, and find the coordinator again."""
        await self._runtime.close()

    def note_refusal(self, refusal: str, settings: Mapping[str, int]) -> None:
        """Log once that the topic cannot be created with these settings, although clients retry."""
        if refusal != self._refusal:
            self._refusal = refusal
            log.warning("%s; %s", refusal, ", ".join(f"{name}={value}" for name, value in settings.items()))

    def _forget_deleted(self, before: TopicsImage, now: TopicsImage) -> None:
        removed = [(topic.name, topic_id) for topic_id, topic in before.by_id.items() if topic_id not in now.by_id]
        if removed:
            self._runtime.notify_all(forgetting_key(removed), TopicsDeleted(removed))


def _log_rebalances(records: Sequence[Record]) -> None:
    for record in records:
        if type(record) is GroupChange and record.why:
            log.info("Preparing to rebalance group %s: %s", record.group_id, record.why)


def by_partition(
    group_ids: Iterable[str], coordinator: GroupCoordinator, most: int = 100
) -> Sliced[list[tuple[int, list[str]]]]:
    """Group the ids by partition, at most `most` in each part, which is one decision."""
    sorted_out: dict[int, list[str]] = {}
    for group_id in group_ids:
        yield
        sorted_out.setdefault(coordinator.partition_for(group_id), []).append(group_id)
    return [(index, part) for index, groups in sorted_out.items() for part in parts(groups, most=most)]
