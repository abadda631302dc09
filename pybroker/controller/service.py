"""One voter's controller: the log is opened and replayed, and while this voter leads, decisions are made and committed.

Owns the meeting of machine, quorum and image: an event goes to the runner, the records that the machine decides on go
to the voter, and what is committed goes to the loader. Machine and runner exist exactly while this voter leads; what is
committed is replayed in either role. Must not know what events mean: `LocalChannel` makes them.

A write that fails ends the controller: what of it reached the disk is known only after a restart. Callers get
`NotControllerError` from then on, and `on_failure` is called with the reason.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pybroker.controller.channel import QuorumState
from pybroker.controller.cluster.machine import ClusterMachine, Event
from pybroker.controller.cluster.periodic import build_timers
from pybroker.controller.errors import ControllerError, NotControllerError
from pybroker.controller.quorum.batches import Batch
from pybroker.controller.quorum.first_records import first_records
from pybroker.controller.quorum.voter import Voter
from pybroker.machine.runner import ClosedError, Runner
from pybroker.metadata.features import RECORD_VERSIONS
from pybroker.metadata.image import NO_LEADER
from pybroker.metadata.loader import Loader
from pybroker.protocol.errors import ProtocolError
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.frame import decode_record, encode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.controller.quorum.settings import QuorumSettings
    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.publishers import Publisher
    from pybroker.protocol.schema import Message

log = logging.getLogger("pybroker.controller")

MAX_RECORDS_PER_BATCH = 10_000
"""Kafka's bound; a single event may exceed it, as its records are never parted."""
_NOT_LEADING = "this node does not lead the metadata quorum"


class Controller:
    """One voter of the metadata quorum and the cluster machine that it drives while it leads. Used from one event loop.

    It is opened first. From then on `replay` takes what is committed; `lead` and `resign` follow the elections.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        quorum: QuorumSettings,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        """Make a controller that is not open. `on_failure` is called with the error after which it cannot go on."""
        self.settings = settings
        self._quorum = quorum
        self._on_failure = on_failure
        self._loader = Loader()
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="pybroker-controller")
        self._failure: Exception | None = None
        self._voter: Voter
        # Invariant: not None exactly while this voter leads.
        self._runner: Runner[Event, Message] | None = None

    async def open(self, publishers: Iterable[Publisher] = ()) -> None:
        """Open the metadata log, or begin it, and load what is known to be committed.

        It is published by the next `replay` or election. Raises `OSError`, `ControllerError` and `MetadataError`; there
        is nothing to be stopped then.
        """
        self._loader = Loader(publishers)
        try:
            self._voter = await asyncio.get_running_loop().run_in_executor(self._disk, self._open_voter)
        except BaseException:
            self._disk.shutdown()
            raise

    async def campaign(self) -> None:
        """Stand for election; the only voter of its quorum leads when this returns.

        Raises `OSError`, `ControllerError` and `MetadataError`.
        """
        # The first leader ever finalizes the features, and a later one those that the log's broker did not know
        # (docs/adr/0021). A crash may have come in between, so it is the levels that are asked for, and not whether the
        # log is empty.
        levels = self._loader.peek().features.levels
        disk, directory = self._disk, self._quorum.directory
        first = await asyncio.get_running_loop().run_in_executor(disk, first_records, directory, levels)
        if levels and first:
            added = [one for one in first if isinstance(one, FeatureLevelRecord)]
            log.info("finalizing %s", ", ".join(f"{one.name} at level {one.feature_level}" for one in added))
        values = [_encode(record) for record in first]
        self.replay(await asyncio.get_running_loop().run_in_executor(self._disk, self._voter.campaign, values))
        if self._voter.is_leader:
            self.lead()

    def replay(self, batches: Iterable[Batch]) -> None:
        """Publish what the quorum has committed. For a voter that does not lead; raises as `open`."""
        for batch in batches:
            self._load(batch)
        self._loader.publish()

    def lead(self) -> None:
        """Begin to decide, from the newest image on: this voter was elected."""
        image = self._loader.image
        log.info(
            "leading cluster %s in epoch %d: %d topics at offset %d",
            self._quorum.cluster_id,
            self._voter.term,
            len(image.topics.by_id),
            image.offset,
        )
        machine = ClusterMachine(self.settings, image)
        runner = Runner(machine, self._append, now=_now_ms, max_records=MAX_RECORDS_PER_BATCH)
        runner.set_timers(build_timers(image, self.settings, _now_ms()))
        self._runner = runner

    async def resign(self) -> None:
        """Decide nothing any more; callers get `NotControllerError`, also those that wait for what is not committed."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.close()

    async def stop(self) -> None:
        """Finish what is in work, then close the log. Later calls raise `NotControllerError`."""
        await self.resign()
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, self._voter.close)
        finally:
            self._disk.shutdown()
            # The publishers know this controller: until a collection found them, they would keep files open.
            self._loader.stop()

    async def submit(self, event: Event) -> Any:
        """Return the machine's reply, when what it decided is committed and published.

        Raises `NotControllerError`, and what ended the commit.
        """
        runner = self._leading()
        try:
            return await runner.submit(event)
        except ClosedError:
            raise NotControllerError(_NOT_LEADING) from None

    @property
    def node_id(self) -> int:
        """Id of this node."""
        return self._quorum.node_id

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        return self._loader.image

    @property
    def leader_id(self) -> int:
        """Node id of the quorum's leader as far as this voter knows, -1 for none."""
        leader = self._voter.leader
        return NO_LEADER if leader is None else leader

    @property
    def next_offset(self) -> int:
        """Offset that the next record of the metadata log will have."""
        return self._voter.next_offset

    def quorum_state(self) -> QuorumState:
        """Return the state of the quorum; raises `NotControllerError` when this voter does not lead it."""
        self._leading()
        return QuorumState(self.leader_id, self._voter.term, self.image.offset + 1, self._voter.next_offset)

    def has_timer(self, key: Hashable) -> bool:
        """Return whether the machine waits for a timer; raises `NotControllerError` when this voter does not lead."""
        return self._leading().has_timer(key)

    def _leading(self) -> Runner[Event, Message]:
        if self._failure is not None:
            raise NotControllerError(f"the metadata log failed: {self._failure}")
        if self._runner is None:
            raise NotControllerError(_NOT_LEADING)
        return self._runner

    def _open_voter(self) -> Voter:
        """Open and load, on the disk's thread: nobody else knows this controller yet."""
        return Voter.open(self._quorum, now_ms=_wall_clock_ms, replay=self._load)

    async def _append(self, records: Sequence[Message]) -> None:
        """Commit and publish what the machine decided on."""
        if self._failure is not None:
            raise NotControllerError(f"the metadata log failed: {self._failure}")
        values = [_encode(record) for record in records]
        try:
            *others, own = await asyncio.get_running_loop().run_in_executor(self._disk, self._voter.commit, values)
        except NotControllerError:  # another voter was elected: nothing was written, and nothing is wrong with the log
            raise
        except Exception as error:
            self._fail(error)
            raise
        for batch in others:
            self._load(batch)
        self._loader.load(records, own.last_offset, own.epoch)
        self._loader.publish()

    def _load(self, batch: Batch) -> None:
        try:
            records = [decode_record(value) for value in batch.values]
        except ProtocolError as error:
            raise ControllerError(
                f"the metadata log cannot be read before offset {batch.last_offset}: {error}"
            ) from error
        self._loader.load(records, batch.last_offset, batch.epoch)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        log.critical("the metadata log failed, and with it the controller: %s", error)
        if self._on_failure is not None:
            self._on_failure(error)


def _encode(record: Message) -> bytes:
    return encode_record(record, RECORD_VERSIONS[type(record).__name__])


def _now_ms() -> int:
    return int(time.monotonic() * 1000)


def _wall_clock_ms() -> int:
    return int(time.time() * 1000)
