"""TransactionMarkers: sends the markers of prepared transactions, from the prepare record to the completion.

Owns the leader for each marker, the grouping of markers into requests, and retries (Kafka's
`TransactionMarkerChannelManager`). One request at a time is in flight to each broker; markers that arrive meanwhile are
in the next one. Markers for partitions that this broker leads are appended without a request, in one call in the next
iteration of the loop (`own_partitions`). Must not know connections, nor decisions about a transaction: the caller
provides functions to send, append, complete and wait.

A marker is sent until it is written, its topic is deleted, or this broker is not the coordinator any more.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from pybroker.coordinator.transaction.events import CompleteTransaction, ProducerIdentity
from pybroker.coordinator.transaction.own_partitions import EndedHere
from pybroker.coordinator.transaction.records import TransactionRecord
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pybroker.coordinator.transaction.machine import TransactionMachine
    from pybroker.coordinator.transaction.own_partitions import OwnPartitions
    from pybroker.machine.clock import Cancellable
    from pybroker.machine.reply import Reply
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.messages.write_txn_markers import WritableTxnMarkerResult, WriteTxnMarkersResponse

    Partition = tuple[str, int]

log = logging.getLogger("pybroker.coordinator.transaction")

NO_NODE = -1
"""Node id of a coordinator that sends requests for all partitions, also for those that its own broker leads."""
MAX_PARTITIONS = 2_000
"""Maximum number of partitions in a request: a leader writes that many markers in a few milliseconds."""
MAX_OWN = 200
"""Maximum number of markers in an append, before other tasks of the loop run."""
AGAIN_S = 0.1
"""Backoff after a failure, or without a leader."""

_DONE = frozenset(
    {
        ErrorCode.NONE,
        # The partition's format supports no transactional records, so it has none.
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_AGAIN = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        # Errors of a group coordinator, which applies the offsets that the transaction commits.
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
"""The partition has seen a newer coordinator or producer: this coordinator is outdated."""


class _Ending:
    """A prepared transaction."""

    __slots__ = ("commits", "completing", "epoch", "identity", "left", "shard", "transactional_id", "version")

    def __init__(self, shard: int, epoch: int, record: TransactionRecord) -> None:
        metadata = record.metadata
        assert metadata is not None
        self.shard = shard
        self.epoch = epoch
        self.transactional_id = record.transactional_id
        self.identity = ProducerIdentity(metadata.producer_id, metadata.producer_epoch)
        self.commits = metadata.commits
        self.version = metadata.client_version
        # Partitions without their marker. Invariant: each is queued, in flight, or waits for a retry, except in the
        # iteration of the decision.
        self.left = set(metadata.partitions)
        # Whether the completion is submitted.
        self.completing = False

    def written_here(self, partitions: Sequence[Partition]) -> EndedHere:
        """Return the marker for some partitions that this broker leads."""
        producer_id, producer_epoch = self.identity
        return EndedHere(partitions, producer_id, producer_epoch, self.commits, self.epoch, self.version)

    def marker(self, partitions: Iterable[Partition]) -> WritableTxnMarker:
        """Return the marker for some partitions."""
        topics: dict[str, WritableTxnMarkerTopic] = {}
        for name, index in sorted(partitions):
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = WritableTxnMarkerTopic(name=name, partition_indexes=[])
            topic.partition_indexes.append(index)
        return WritableTxnMarker(
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            transaction_result=self.commits,
            topics=list(topics.values()),
            coordinator_epoch=self.epoch,
            transaction_version=self.version,
        )


class TransactionMarkers:
    """A `ShardObserver`: the prepared transactions that this broker coordinates. Used from one event loop."""

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        *,
        send: Callable[[int, WriteTxnMarkersRequest], Reply],
        complete: Callable[[int, CompleteTransaction], Reply],
        soon: Callable[[Callable[[], None]], object],
        later: Callable[[float, Callable[[], None]], Cancellable],
        node_id: int = NO_NODE,
        own: OwnPartitions | None = None,
    ) -> None:
        """`send` sends a request to a broker. `complete` submits the event to a partition's machine and may raise.
        `soon` calls a function in the next iteration of the loop, `later` after a delay in seconds. `own` contains the
        partitions that this broker, `node_id`, leads; without `own` requests are sent for them as for others.
        """
        self._image = image
        self._send = send
        self._complete = complete
        self._soon = soon
        self._later = later
        self._node_id, self._own = node_id, own
        # By the partition of `__transaction_state`, then by transactional id.
        self._endings: dict[int, dict[str, _Ending]] = {}
        # Transactions without queued markers yet.
        self._decided: list[_Ending] = []
        # By broker: the markers of the next request.
        self._queued: dict[int, dict[_Ending, set[Partition]]] = {}
        self._in_progress: set[int] = set()
        # Markers for partitions that this broker leads, to be appended in the next iteration of the loop.
        self._here: dict[_Ending, set[Partition]] = {}
        # Markers to retry: failed, or of a partition without a leader. A transaction without partitions in here retries
        # its completion. Invariant: while this is not empty, a timer is set.
        self._waiting: dict[_Ending, set[Partition]] = {}
        self._again: Cancellable | None = None
        self._flush_due = False

    # ------------------------------------------------------------------------------------------- as a ShardObserver

    def unfinished(self, machine: TransactionMachine) -> Sequence[TransactionRecord]:
        """Return the prepared transactions of a `__transaction_state` partition that was just loaded.

        Only this broker sends their markers from now on.
        """
        known = machine.state.transactions
        return [TransactionRecord(one, metadata) for one, metadata in known.items() if metadata.is_prepared]

    def committed(self, partition: int, leader_epoch: int, records: Sequence[TransactionRecord]) -> None:
        """Start sending the markers of prepared transactions.

        The markers are sent in the next iteration of the loop: the records are applied then, and the replies are sent.
        """
        for record in records:
            if record.metadata is not None and record.metadata.is_prepared:
                ending = _Ending(partition, leader_epoch, record)
                self._endings.setdefault(partition, {})[record.transactional_id] = ending
                self._decided.append(ending)
                self._flush_soon()

    def resigned(self, partition: int) -> None:
        """Drop the markers that the next coordinator of the partition sends."""
        self._endings.pop(partition, None)
        for queue in (*self._queued.values(), self._here, self._waiting):
            for ending in [ending for ending in queue if ending.shard == partition]:
                del queue[ending]

    # ------------------------------------------------------------------------------------------------------ sending

    def follow(self) -> None:
        """Retry markers that wait for a leader: there is a newer image."""
        if self._waiting:
            self._soon(self._try_again)

    def without_marker(self, partition: int, transactional_id: str) -> frozenset[Partition] | None:
        """Return the partitions without the marker of a prepared transaction; None for an unknown transaction."""
        ending = self._endings.get(partition, {}).get(transactional_id)
        return None if ending is None else frozenset(ending.left)

    def pending(self) -> int:
        """Return the number of prepared transactions that are not complete."""
        return sum(map(len, self._endings.values()))

    def close(self) -> None:
        """Stop sending."""
        self._endings.clear()
        self._decided.clear()
        self._queued.clear()
        self._here.clear()
        self._waiting.clear()
        self._own = None
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def _route(self, ending: _Ending, partitions: Iterable[Partition]) -> None:
        """Queue partitions for their leaders; deleted partitions need no marker."""
        topics = self._image().topics.by_name
        brokers = self._image().cluster.brokers
        here: set[Partition] = set()
        # In sorted order: a simulation must be the same in every process.
        for partition in sorted(partitions):
            topic = topics.get(partition[0])
            known = None if topic is None else topic.partitions.get(partition[1])
            if known is None:
                log.info("%s-%d was deleted: no marker is written for %s", *partition, ending.transactional_id)
                ending.left.discard(partition)
            elif known.leader < 0 or known.leader not in brokers:
                self._wait(ending, (partition,))
            elif known.leader == self._node_id and self._own is not None and self._own.takes(partition[0]):
                here.add(partition)
            else:
                self._queued.setdefault(known.leader, {}).setdefault(ending, set()).add(partition)
        if here:
            self._here.setdefault(ending, set()).update(here)
        if here or self._queued:
            self._flush_soon()

    def _wait(self, ending: _Ending, partitions: Iterable[Partition]) -> None:
        self._waiting.setdefault(ending, set()).update(partitions)
        if self._again is None:
            self._again = self._later(AGAIN_S, self._try_again)

    def _try_again(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None
        waiting, self._waiting = self._waiting, {}
        for ending, partitions in waiting.items():
            if self._is_current(ending):
                self._route(ending, partitions)
                self._maybe_finish(ending)

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._soon(self._flush)

    def _flush(self) -> None:
        decided, self._decided = self._decided, []
        for ending in decided:
            if self._is_current(ending):
                self._route(ending, ending.left)
                self._maybe_finish(ending)
        self._flush_due = False
        if self._here:
            self._append_here()
        for broker in list(self._queued):
            self._maybe_send(broker)

    def _append_here(self) -> None:
        """Append the markers of partitions that this broker leads, some at a time."""
        own = self._own
        assert own is not None
        queue = self._here
        sent: list[tuple[_Ending, list[Partition]]] = []
        capacity = MAX_OWN
        while queue and capacity > 0:
            ending = next(iter(queue))
            partitions = sorted(queue.pop(ending))
            if len(partitions) > capacity:
                queue[ending] = set(partitions[capacity:])
                del partitions[capacity:]
            sent.append((ending, partitions))
            capacity -= len(partitions)
        if queue:
            self._flush_soon()
        own.write([ending.written_here(partitions) for ending, partitions in sent], partial(self._appended_here, sent))

    def _appended_here(self, sent: list[tuple[_Ending, list[Partition]]], codes: list[int]) -> None:
        """Process the error codes of markers that were appended together, in their order."""
        if not any(codes):
            for ending, partitions in sent:
                if self._is_current(ending):
                    ending.left.difference_update(partitions)
                    self._maybe_finish(ending)
            return
        each = iter(codes)
        for ending, partitions in sent:
            of_ending = dict(zip(partitions, each, strict=False))
            if self._is_current(ending):
                self._end_partitions(ending, partitions, of_ending)

    def _maybe_send(self, broker: int) -> None:
        if broker in self._in_progress or not (sent := self._take(broker)):
            return
        self._in_progress.add(broker)
        request = WriteTxnMarkersRequest(markers=[ending.marker(partitions) for ending, partitions in sent.items()])
        reply = self._send(broker, request)
        reply.on_complete(lambda response, error: self._responded(broker, sent, response, error))

    def _take(self, broker: int) -> dict[_Ending, set[Partition]]:
        """Remove and return the markers of the next request. It has each producer once: results are by producer."""
        queue = self._queued.get(broker, {})
        taken: dict[_Ending, set[Partition]] = {}
        producers: set[int] = set()
        capacity = MAX_PARTITIONS
        for ending in list(queue):
            if capacity <= 0:
                break
            if ending.identity.producer_id in producers:
                continue
            producers.add(ending.identity.producer_id)
            partitions = queue.pop(ending)
            if len(partitions) > capacity:
                rest = set(sorted(partitions)[capacity:])
                queue[ending] = rest
                partitions -= rest
            taken[ending] = partitions
            capacity -= len(partitions)
        if not queue:
            self._queued.pop(broker, None)
        return taken

    def _responded(
        self,
        broker: int,
        sent: dict[_Ending, set[Partition]],
        response: WriteTxnMarkersResponse | None,
        error: Exception | None,
    ) -> None:
        self._in_progress.discard(broker)
        if error is not None:
            log.debug("Sending markers again: broker %d has not responded: %s", broker, error)
        results = {} if response is None else {result.producer_id: result for result in response.markers}
        for ending, partitions in sent.items():
            if self._is_current(ending):
                self._end_partitions(ending, partitions, _codes(results.get(ending.identity.producer_id)))
        self._maybe_send(broker)

    def _end_partitions(self, ending: _Ending, partitions: Iterable[Partition], codes: Mapping[Partition, int]) -> None:
        """Process the results of a marker's partitions; those without a result are sent again."""
        again = []
        for partition in sorted(partitions):
            code = codes.get(partition, ErrorCode.REQUEST_TIMED_OUT)
            if code in _DONE:
                ending.left.discard(partition)
            elif code in _FENCED:
                log.warning(
                    "Stopping the markers of %s of leader epoch %d of __transaction_state-%d: %s-%d returned %s",
                    *(ending.transactional_id, ending.epoch, ending.shard, *partition, _name(code)),
                )
                self._endings[ending.shard].pop(ending.transactional_id)
                self._forget(ending)
                return
            else:
                if code not in _AGAIN:
                    words = "Failed to write the marker of %s to %s-%d: %s"
                    log.error(words, ending.transactional_id, *partition, _name(code))
                again.append(partition)
        if again:
            self._wait(ending, again)
        self._maybe_finish(ending)

    def _forget(self, ending: _Ending) -> None:
        for queue in (*self._queued.values(), self._here, self._waiting):
            queue.pop(ending, None)

    # --------------------------------------------------------------------------------------------------- completing

    def _is_current(self, ending: _Ending) -> bool:
        return self._endings.get(ending.shard, {}).get(ending.transactional_id) is ending

    def _maybe_finish(self, ending: _Ending) -> None:
        if not ending.left:
            self._finish(ending)

    def _finish(self, ending: _Ending) -> None:
        """Submit the completion: all markers are written."""
        if ending.completing or not self._is_current(ending):
            return
        ending.completing = True
        event = CompleteTransaction(ending.transactional_id, ending.identity)
        try:
            reply = self._complete(ending.shard, event)
        except Exception as error:  # noqa: BLE001 - as an error of the reply
            self._finished(ending, error)
            return
        reply.on_complete(lambda _reply, error: self._finished(ending, error))

    def _finished(self, ending: _Ending, error: Exception | None) -> None:
        ending.completing = False
        if error is None:
            if self._is_current(ending):
                del self._endings[ending.shard][ending.transactional_id]
            return
        log.info("Retrying to record the end of the transaction of %s: %s", ending.transactional_id, error)
        if self._is_current(ending):
            # No partition is left, so the retry only completes it.
            self._wait(ending, ())


def _codes(result: WritableTxnMarkerResult | None) -> dict[Partition, int]:
    if result is None:
        return {}
    return {(topic.name, one.partition_index): one.error_code for topic in result.topics for one in topic.partitions}


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
