"""The transaction coordinator as the rest of the broker sees it: an event in, its reply out when it is committed.

Owns what makes coordinators of transactions out of the runtime: the partition that a transactional id belongs to, fresh
producer ids for the events that need them, the checks for transactions that exceed their timeout, markers. Elections,
loading, appends and replies are the runtime's. Must not know requests' envelopes, nor what a partition is.
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
    """Where producer ids that nobody has come from."""

    take: Callable[[], int | None]
    """Returns one, None where a new block is needed first."""
    take_after_refill: Callable[[], Awaitable[int]]
    """Returns one, after a new block has come; raises what keeps it from coming."""


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
        ask_broker: Callable[[int, WriteTxnMarkersRequest], Awaitable[WriteTxnMarkersResponse]],
        own: OwnPartitions | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`open_log` finds the log of a partition that this broker leads; `ask_broker` sends markers to a broker, and
        raises where it does not answer. `own` reaches the partitions that this broker leads; without it they are asked
        for as well. `commits` is shared by all runtimes of a data plane.
        """
        self._context = context = TransactionContext(settings)
        self._image = EMPTY_IMAGE
        self._fresh_ids = fresh_ids
        self._ask_broker = ask_broker
        self._own = own
        self._clock = clock
        # The last reason that was logged why the topic could not be created.
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
        # The runtime's own, so that a request costs no further call.
        self.partition_for = runtime.partition_for
        self.submit = runtime.submit
        self.submit_all = runtime.submit_all
        self.listing = asyncio.Lock()
        """Held for `ListTransactions`, whose reply is a copy of all ids: there is one of it, however many ask."""
        self.expect_step = runtime.expect_step
        self.step = runtime.step

    def submit_with_id(self, event: InitProducerId | EndTransaction) -> Reply:
        """Hand in an event that may need a fresh producer id, which it gets then; raises as `submit`."""
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
        """Hand in partitions that a client adds; raises as `submit`. Those that this broker leads learn of it when that
        is committed, before anything else is decided about the transaction, and ask nobody when its first records come.
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
        """Hand in the question whether partitions are part of a transaction; with `adds` those that are not are added.

        The reply is whether all of them are. None where another broker may know it: that coordinates, or has partitions
        that are not known here. None as well for very many, which would hold the loop: they are asked about in parts.
        """
        if len(partitions) > MANY:
            return None
        topics = self._image.topics.by_name
        if any(name not in topics or index not in topics[name].partitions for name, index in partitions):
            return None
        asked = frozenset(partitions)
        try:
            if adds:
                event = AddPartitions(transactional_id, identity, asked, FIRST_VERSION_WITH_EPOCH_BUMP)
                return self.submit(transactional_id, event).through(lambda _: True)
            reply = self.submit(transactional_id, VerifyPartitions(transactional_id, identity, asked))
        except CoordinatorError:
            return None
        return reply.through(lambda codes: not any(codes.values()))

    def follow(self, image: MetadataImage) -> None:
        """Take note of a newer image, whose partitions are open here: be elected, resign, find moved leaders."""
        before, self._image = self._image, image
        self._context.version = image.features.levels.get(TRANSACTION_VERSION, 0)
        self._runtime.follow(image)
        if image.topics is not before.topics or image.cluster is not before.cluster:
            self._markers.follow()
        if self._sweep is None and not self._closed:
            self._arm_sweep()

    def without_marker(self, transactional_id: str) -> frozenset[tuple[str, int]] | None:
        """Return the partitions that still need the marker of a transaction whose end is decided.

        None where this broker ends none of that transactional id.
        """
        return self._markers.without_marker(self.partition_for(transactional_id), transactional_id)

    def pending_markers(self) -> int:
        """Count the transactions whose end is decided, and which do not have all markers."""
        return self._markers.pending()

    def states(self) -> Counter[str]:
        """Count the transactional ids by state; any thread may ask."""
        machines = list(self._runtime.machines())
        return Counter(one.state.value for machine in machines for one in list(machine.state.transactions.values()))

    async def loaded(self) -> None:
        """Wait until no coordinator is being loaded."""
        await self._runtime.loaded()

    async def close(self) -> None:
        """Resign from everything: a client that waits for a reply gets an error, and finds the coordinator again."""
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
        """Warn that the topic cannot be created with these settings; once, for clients ask for it again and again."""
        if refusal != self._refusal:
            self._refusal = refusal
            log.warning("%s; %s", refusal, ", ".join(f"{name}={value}" for name, value in settings.items()))

    def _work_and_step(self, work: Callable[[], None]) -> None:
        """Do something, and have the events that it hands in decided at once: they need no turn of their own."""
        self._runtime.expect_step()
        try:
            work()
        finally:
            self._runtime.step()

    def _send(self, broker: int, request: WriteTxnMarkersRequest) -> Reply:
        """Ask a broker; the reply is its answer, or why there is none."""
        reply = Reply()

        async def ask() -> None:
            try:
                response = await self._ask_broker(broker, request)
            except Exception as error:  # noqa: BLE001 - whatever it is: the markers are sent again
                reply(None, error)
            else:
                reply(response, None)

        self._spawn(ask())
        return reply

    def _with_id(self, then: Callable[[int], None], reply: Reply) -> None:
        """Call `then` with a fresh producer id; where none can be had, that is the reply."""
        fresh_id = self._fresh_ids.take()
        if fresh_id is not None:
            then(fresh_id)
            return

        async def refill() -> None:
            try:
                taken = await self._fresh_ids.take_after_refill()
            except Exception as error:  # noqa: BLE001 - whatever it is: it is the answer
                reply(None, error)
            else:
                then(taken)

        self._spawn(refill())

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ------------------------------------------------------------------------------ transactions open for too long

    def _arm_sweep(self) -> None:
        self._sweep = self._clock.call_later(self._context.settings.abort_interval_ms / 1000, self._abort_timed_out)

    def _abort_timed_out(self) -> None:
        self._arm_sweep()
        for partition in self._runtime.active():
            self._spawn(self._abort_in(partition))

    async def _abort_in(self, partition: int) -> None:
        """Abort what was open for too long in one partition; what cannot be now is looked at in the next round."""
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
    """Nothing is said about what is decided."""
