"""The interface of the transaction coordinator: submits events, and completes their replies on commit.

Owns the specifics of transactions in the runtime: the partition of a transactional id, new producer ids for the events
that need them, periodic checks for transactions that exceed their timeout, markers. The runtime owns elections,
loading, appends and replies. Must not know requests' envelopes, nor what a partition is.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.coordinator.runtime.kind import CoordinatorKind, RuntimeSettings
from pybroker.coordinator.runtime.partitioning import partition_of
from pybroker.coordinator.runtime.service import CoordinatorRuntime
from pybroker.coordinator.transaction.errors import ProducerIdNeededError
from pybroker.coordinator.transaction.events import AbortTimedOut, AddPartitions, VerifyPartitions
from pybroker.coordinator.transaction.log import TransactionRecordCodec, fault_effect
from pybroker.coordinator.transaction.machine import TransactionMachine
from pybroker.coordinator.transaction.markers import TransactionMarkers
from pybroker.coordinator.transaction.metadata import FIRST_VERSION_WITH_EPOCH_BUMP
from pybroker.coordinator.transaction.state import TransactionContext
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.machine.parts import MANY
from pybroker.machine.reply import Reply
from pybroker.machine.runner import ClosedError, UncommittedError
from pybroker.metadata.features import TRANSACTION_VERSION
from pybroker.metadata.image import EMPTY_IMAGE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pybroker.coordinator.runtime.commits import CommitWaits
    from pybroker.coordinator.runtime.log import PartitionLog
    from pybroker.coordinator.transaction.events import EndTransaction, InitProducerId, ProducerIdentity, TimedOut
    from pybroker.coordinator.transaction.own_partitions import OwnPartitions
    from pybroker.coordinator.transaction.records import TransactionRecord
    from pybroker.coordinator.transaction.settings import TransactionSettings
    from pybroker.machine.clock import Cancellable, Clock
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

log = logging.getLogger("pybroker.coordinator.transaction")


def _build_machine(context: TransactionContext) -> TransactionMachine:
    return TransactionMachine(context)


class FreshIds(msgspec.Struct, frozen=True):
    """The source of new producer ids."""

    take: Callable[[], int | None]
    """Returns an id, None if a new block is needed first."""
    take_after_refill: Callable[[], Awaitable[int]]
    """Returns an id from a new block; raises the error that prevents its allocation."""


class TransactionCoordinator:
    """The coordinators of transactions on this broker. Used from one event loop."""

    def __init__(
        self,
        settings: TransactionSettings,
        runtime_settings: RuntimeSettings,
        *,
        open_log: Callable[[int], PartitionLog | None],
        commits: CommitWaits,
        fresh_ids: FreshIds,
        query_broker: Callable[[int, WriteTxnMarkersRequest], Awaitable[WriteTxnMarkersResponse]],
        own: OwnPartitions | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`open_log` returns the log of a partition that this broker leads. `query_broker` sends markers to a broker,
        and raises if it does not respond. `own` appends markers to the partitions that this broker leads; without `own`
        requests are sent for them as well. `commits` is shared by all runtimes of a data plane.
        """
        self._context = context = TransactionContext(settings)
        self._image = EMPTY_IMAGE
        self._fresh_ids = fresh_ids
        self._query_broker = query_broker
        self._own = own
        self._clock = clock
        # The last logged reason why the topic could not be created.
        self._refusal: str | None = None
        self._sweep: Cancellable | None = None
        self._tasks: set[asyncio.Future[Any]] = set()
        self._closed = False
        self._markers = TransactionMarkers(
            lambda: self._image,
            send=self._send,
            complete=lambda partition, event: self._runtime.submit_to(partition, event),
            soon=lambda work: asyncio.get_running_loop().call_soon(self._work_and_step, work),
            later=lambda delay_s, work: asyncio.get_running_loop().call_later(delay_s, work),
            node_id=runtime_settings.node_id,
            own=own,
        )
        self._runtime = runtime = CoordinatorRuntime(
            CoordinatorKind(
                topic=STATE_TOPIC,
                entries="transactional ids",
                partition_of=partition_of,
                build_machine=partial(_build_machine, context),
                codec=TransactionRecordCodec(),
                appended=_ignore,
                fault_effect=fault_effect,
                observer=self._markers,
            ),
            runtime_settings,
            open_log=open_log,
            commits=commits,
            clock=clock,
        )
        # The runtime's own methods, which saves a call per request.
        self.partition_for = runtime.partition_for
        self.submit = runtime.submit
        self.submit_all = runtime.submit_all
        self.listing = asyncio.Lock()
        """Held during `ListTransactions`, whose reply is a copy of all ids: only one copy exists at a time."""
        self.expect_step = runtime.expect_step
        self.step = runtime.step

    def submit_with_id(self, event: InitProducerId | EndTransaction) -> Reply:
        """Submit an event, and repeat it with a new producer id if it needs one; raises as `submit`."""
        reply = Reply()

        def complete(value: Any, error: Exception | None) -> None:
            if isinstance(error, ProducerIdNeededError) and event.fresh_id is None:
                self._with_id(lambda fresh_id: again(msgspec.structs.replace(event, fresh_id=fresh_id)), reply)
            else:
                reply(value, error)

        def again(replaced: InitProducerId | EndTransaction) -> None:
            try:
                self.submit(replaced.transactional_id, replaced).on_complete(reply)
            except CoordinatorError as error:
                reply(None, error)

        self.submit(event.transactional_id, event).on_complete(complete)
        return reply

    def add(self, event: AddPartitions) -> Reply:
        """Submit partitions that a client adds; raises as `submit`. On commit, and before any later decision about the
        transaction, the partitions that this broker leads are updated: their first batch needs no verification request.
        """
        partition = self.partition_for(event.transactional_id)
        reply = self._runtime.submit_to(partition, event)
        own, epoch = self._own, self._runtime.epoch_of(partition)
        if own is None:
            return reply
        return reply.through(lambda _: own.confirm(event, epoch))

    def verify(
        self, transactional_id: str, identity: ProducerIdentity, partitions: Sequence[tuple[str, int]], *, adds: bool
    ) -> Reply | None:
        """Submit the query whether partitions are part of a transaction; with `adds` missing ones are added.

        The reply is whether all of them are. Returns None if another broker may know it, because it is the coordinator,
        or because partitions are unknown here. Also returns None for very many partitions, which would block the loop:
        they are verified in parts.
        """
        if len(partitions) > MANY:
            return None
        topics = self._image.topics.by_name
        if any(name not in topics or index not in topics[name].partitions for name, index in partitions):
            return None
        requested = frozenset(partitions)
        try:
            if adds:
                event = AddPartitions(transactional_id, identity, requested, FIRST_VERSION_WITH_EPOCH_BUMP)
                return self.submit(transactional_id, event).through(lambda _: True)
            reply = self.submit(transactional_id, VerifyPartitions(transactional_id, identity, requested))
        except CoordinatorError:
            return None
        return reply.through(lambda codes: not any(codes.values()))

    def follow(self, image: MetadataImage) -> None:
        """Apply a newer image, whose partitions are open here: load, resign, and find moved leaders."""
        before, self._image = self._image, image
        self._context.version = image.features.levels.get(TRANSACTION_VERSION, 0)
        self._runtime.follow(image)
        if image.topics is not before.topics or image.cluster is not before.cluster:
            self._markers.follow()
        if self._sweep is None and not self._closed:
            self._arm_sweep()

    def without_marker(self, transactional_id: str) -> frozenset[tuple[str, int]] | None:
        """Return the partitions that still need the marker of a prepared transaction.

        None if this broker has no such transaction of that transactional id.
        """
        return self._markers.without_marker(self.partition_for(transactional_id), transactional_id)

    def pending_markers(self) -> int:
        """Return the number of prepared transactions that lack markers."""
        return self._markers.pending()

    def states(self) -> Counter[str]:
        """Count the transactional ids by state. Safe to call from any thread."""
        machines = list(self._runtime.machines())
        return Counter(one.state.value for machine in machines for one in list(machine.state.transactions.values()))

    async def loaded(self) -> None:
        """Wait until no coordinator is loading."""
        await self._runtime.loaded()

    async def close(self) -> None:
        """Resign from all partitions: waiting clients get an error, and find the coordinator again."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        await self._runtime.close()
        self._markers.close()
        self._own = None
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def note_refusal(self, refusal: str, settings: Mapping[str, int]) -> None:
        """Log once that the topic cannot be created with these settings, although clients retry."""
        if refusal != self._refusal:
            self._refusal = refusal
            log.warning("%s; %s", refusal, ", ".join(f"{name}={value}" for name, value in settings.items()))

    def _work_and_step(self, work: Callable[[], None]) -> None:
        """Run `work`, and process the events that it submits at once, in the same iteration of the loop."""
        self._runtime.expect_step()
        try:
            work()
        finally:
            self._runtime.step()

    def _send(self, broker: int, request: WriteTxnMarkersRequest) -> Reply:
        """Send a request to a broker; the reply is its response, or the error."""
        reply = Reply()

        async def query() -> None:
            try:
                response = await self._query_broker(broker, request)
            except Exception as error:  # noqa: BLE001 - whatever it is: the markers are sent again
                reply(None, error)
            else:
                reply(response, None)

        self._spawn(query())
        return reply

    def _with_id(self, then: Callable[[int], None], reply: Reply) -> None:
        """Call `then` with a new producer id; if none can be allocated, the error is the reply."""
        fresh_id = self._fresh_ids.take()
        if fresh_id is not None:
            then(fresh_id)
            return

        async def refill() -> None:
            try:
                taken = await self._fresh_ids.take_after_refill()
            except Exception as error:  # noqa: BLE001 - whatever it is: it is the reply
                reply(None, error)
            else:
                then(taken)

        self._spawn(refill())

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ------------------------------------------------------------------------------ transactions that time out

    def _arm_sweep(self) -> None:
        self._sweep = self._clock.call_later(self._context.settings.abort_interval_ms / 1000, self._abort_timed_out)

    def _abort_timed_out(self) -> None:
        self._arm_sweep()
        for partition in self._runtime.active():
            self._spawn(self._abort_in(partition))

    async def _abort_in(self, partition: int) -> None:
        """Abort the transactions of one partition that exceed their timeout; failures are retried in the next round."""
        event = AbortTimedOut()
        with suppress(CoordinatorError, ClosedError, UncommittedError):
            while True:
                found: TimedOut = await self._runtime.submit_to(partition, event)
                for transactional_id in found.aborted:
                    log.info("Aborting the transaction of %s: it exceeded its timeout", transactional_id)
                if not found.need_ids and not found.are_more:
                    return
                event = AbortTimedOut(tuple([(one, await self._fresh_id()) for one in found.need_ids]))

    async def _fresh_id(self) -> int:
        fresh_id = self._fresh_ids.take()
        return await self._fresh_ids.take_after_refill() if fresh_id is None else fresh_id


def _ignore(_records: Sequence[TransactionRecord]) -> None:
    """Ignore the committed records."""
