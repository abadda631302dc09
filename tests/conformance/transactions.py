"""A transactional producer, frame by frame, and what a reader of its partitions sees.

Owns what the tests of transactions share; the fixture that makes producers is in `conftest.py`. Every method sends one
request, and returns its error code or the answer: nothing is sent again, but where a method's words say so.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.batches import CONTROL, TRANSACTIONAL, ReadBatch, batch_of, read_batches
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produced, request

OK = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_COORDINATOR = 16
ILLEGAL_GENERATION = 22
INVALID_GROUP_ID = 24
UNKNOWN_MEMBER_ID = 25
CLUSTER_AUTHORIZATION_FAILED = 31
INVALID_REQUEST = 42
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
INVALID_TXN_STATE = 48
INVALID_PRODUCER_ID_MAPPING = 49
INVALID_TRANSACTION_TIMEOUT = 50
CONCURRENT_TRANSACTIONS = 51
TRANSACTION_COORDINATOR_FENCED = 52
TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
OPERATION_NOT_ATTEMPTED = 55
UNKNOWN_PRODUCER_ID = 59
FENCED_INSTANCE_ID = 82
UNSTABLE_OFFSET_COMMIT = 88
PRODUCER_FENCED = 90
TRANSACTIONAL_ID_NOT_FOUND = 105
TRANSACTION_ABORTABLE = 120

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
ABORT, COMMIT = False, True
NO_TIMESTAMP = -1
PATIENCE_SECONDS = 60


@dataclass
class Transactional:
    """One instance of a transactional producer, on a connection to its coordinator, which leads its partitions too."""

    wire: Wire
    id: str
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    # -------------------------------------------------------------------------------------------------- coordinator

    def query_init(
        self, version: int = 4, *, timeout_ms: int = 60_000, producer_id: int = -1, epoch: int = -1, **more: Any
    ) -> Any:
        """InitProducerId, asked again while an earlier transaction of the id is being ended."""
        known = {"producer_id": producer_id, "producer_epoch": epoch} if version >= 3 else {}
        made = {"transactional_id": self.id, "transaction_timeout_ms": timeout_ms, **known, **more}

        def responded() -> Any:
            response = self.wire.call("InitProducerId", version, **made)
            return None if response.error_code == CONCURRENT_TRANSACTIONS else response

        return wait_until(responded, within=PATIENCE_SECONDS, what=f"{self.id} gets a producer id")

    def init(self, version: int = 4, **more: Any) -> Transactional:
        """Get an id and epoch, which has to succeed."""
        response = self.query_init(version, **more)
        assert response.error_code == OK, response
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.sequences.clear()
        return self

    def add(self, topic: str, *partitions: int, version: int = 3, **who: Any) -> int:
        """AddPartitionsToTxn as clients send it (versions 0 to 3), for one topic; the error of the last partition."""
        (found,) = self.query_add([{"name": topic, "partitions": list(partitions or (0,))}], version, **who)
        return int(found.results_by_partition[-1].partition_error_code)

    def query_add(
        self, topics: Sequence[dict[str, Any]], version: int = 3, *, producer_id: int | None = None, **who: Any
    ) -> Any:
        """The topics' results of an AddPartitionsToTxn, asked again while the last transaction is being ended."""

        def responded() -> Any:
            response = self.wire.call(
                "AddPartitionsToTxn",
                version,
                v3_and_below_transactional_id=who.get("id", self.id),
                v3_and_below_producer_id=self.producer_id if producer_id is None else producer_id,
                v3_and_below_producer_epoch=who.get("epoch", self.epoch),
                v3_and_below_topics=list(topics),
            )
            found = response.results_by_topic_v3_and_below
            codes = {part.partition_error_code for one in found for part in one.results_by_partition}
            return None if CONCURRENT_TRANSACTIONS in codes else found

        return wait_until(responded, within=PATIENCE_SECONDS, what=f"partitions are added for {self.id}")

    def verify(self, topic: str, *partitions: int, version: int = 5, verify_only: bool = True, **who: Any) -> list[int]:
        """AddPartitionsToTxn as brokers send it (versions 4 and 5), for one topic; its partitions' errors in order."""
        made = {
            "transactional_id": who.get("id", self.id),
            "producer_id": who.get("producer_id", self.producer_id),
            "producer_epoch": who.get("epoch", self.epoch),
            "verify_only": verify_only,
            "topics": [{"name": topic, "partitions": list(partitions or (0,))}],
        }
        response = self.wire.call("AddPartitionsToTxn", version, transactions=[made])
        assert response.error_code == OK, response
        (result,) = response.results_by_transaction
        (found,) = result.topic_results
        codes = {part.partition_index: int(part.partition_error_code) for part in found.results_by_partition}
        return [codes[index] for index in sorted(codes)]

    def add_offsets(self, group: str, version: int = 3, **who: Any) -> int:
        """AddOffsetsToTxn, asked again while the last transaction is being ended."""

        def responded() -> tuple[int] | None:
            code = self.wire.call(
                "AddOffsetsToTxn", version, transactional_id=self.id, group_id=group, **self._who(who)
            ).error_code
            return None if code == CONCURRENT_TRANSACTIONS else (code,)

        return _first(wait_until(responded, within=PATIENCE_SECONDS, what=f"{group} is added for {self.id}"))

    def query_end(self, committed: bool, version: int = 4, **who: Any) -> Any:
        """EndTxn, asked again while the transaction is being ended by an earlier one."""

        def responded() -> Any:
            response = self.wire.call(
                "EndTxn", version, transactional_id=self.id, committed=committed, **self._who(who)
            )
            return None if response.error_code == CONCURRENT_TRANSACTIONS else response

        return wait_until(responded, within=PATIENCE_SECONDS, what=f"{self.id} ends its transaction")

    def end(self, committed: bool, version: int = 4, **who: Any) -> int:
        """EndTxn; after version 5 the producer goes on with the id and epoch that the answer gave."""
        response = self.query_end(committed, version, **who)
        if version >= 5 and response.error_code == OK:
            if response.producer_epoch != self.epoch or response.producer_id != self.producer_id:
                self.sequences.clear()
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        return int(response.error_code)

    def describe(self) -> Any:
        """What DescribeTransactions says of the id."""
        (found,) = self.wire.call("DescribeTransactions", 0, transactional_ids=[self.id]).transaction_states
        return found

    def wait_for(self, *states: str) -> None:
        """Wait until the coordinator says that the transaction is in one of these states."""
        wait_until(
            lambda: self.describe().transaction_state in states,
            within=PATIENCE_SECONDS,
            what=lambda: f"{self.id} is {states}, not {self.describe()}",
        )

    # --------------------------------------------------------------------------------------------------- partitions

    def write(self, topic: str, *values: bytes, partition: int = 0, version: int = 11, **header: Any) -> Any:
        """Produce a batch of the transaction; the partition's part of the answer.

        Asked again while the last transaction is being ended. Sequences count on where the batch is accepted.
        """
        place = (topic, partition)
        values = values or (b"value",)
        made = {
            "attributes": TRANSACTIONAL,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "base_sequence": self.sequences.get(place, 0),
            **header,
        }
        data = [{"name": topic, "partition_data": [{"index": partition, "records": batch_of(*values, **made)}]}]
        requested = {"transactional_id": self.id, "acks": -1, "timeout_ms": 10_000, "topic_data": data}

        def responded() -> Any:
            response = produced(self.wire.call("Produce", version, **requested))
            return None if response.error_code == CONCURRENT_TRANSACTIONS else response

        response = wait_until(responded, within=PATIENCE_SECONDS, what=f"{self.id} writes to {topic}-{partition}")
        if response.error_code == OK:
            self.sequences[place] = made["base_sequence"] + len(values)
        return response

    def run(self, topic: str, *values: bytes, committed: bool = True, partition: int = 0) -> None:
        """A whole transaction of one partition, as clients before Kafka 4.0 have it; returns when it is complete."""
        assert self.add(topic, partition) == OK
        assert self.write(topic, *values, partition=partition).error_code == OK
        assert self.end(committed) == OK
        self.wait_for("CompleteCommit" if committed else "CompleteAbort")

    # ------------------------------------------------------------------------------------------------------- groups

    def commit_offset(
        self, group: str, topic: str, offset: int = 5, version: int = 3, *, partition: int = 0, **member: Any
    ) -> int:
        """TxnOffsetCommit of one partition, asked again while the last transaction is being ended."""
        place: dict[str, Any] = {
            "partition_index": partition,
            "committed_offset": offset,
            "committed_metadata": "kept",
        }
        who: dict[str, Any] = {key: member.pop(key) for key in ("producer_id", "epoch") if key in member}
        seen = {"generation_id": -1, "member_id": "", "group_instance_id": None} if version >= 3 else {}
        if version >= 2:
            place["committed_leader_epoch"] = 3
        made = {
            "transactional_id": self.id,
            "group_id": group,
            **self._who(who),
            **seen,
            **member,
            "topics": [{"name": topic, "partitions": [place]}],
        }

        def responded() -> tuple[int] | None:
            (found,) = self.wire.call("TxnOffsetCommit", version, **made).topics
            code = found.partitions[0].error_code
            return None if code == CONCURRENT_TRANSACTIONS else (code,)

        return _first(wait_until(responded, within=PATIENCE_SECONDS, what=f"{self.id} commits offsets of {group}"))

    def _who(self, given: dict[str, Any]) -> dict[str, Any]:
        return {
            "producer_id": given.get("producer_id", self.producer_id),
            "producer_epoch": given.get("epoch", self.epoch),
        }


def _first(found: tuple[int] | None) -> int:
    assert found is not None
    return int(found[0])


@dataclass(frozen=True, slots=True)
class Seen:
    """What a Fetch from offset 0 of a partition gives."""

    batches: list[ReadBatch]
    aborted: list[tuple[int, int]] | None
    """Producer id and first offset, as the answer has them."""

    high_watermark: int
    last_stable_offset: int

    @property
    def values(self) -> list[bytes]:
        """Values of all records but those of markers."""
        return [value for batch in self.batches if not is_marker(batch) for value in batch.values if value is not None]

    @property
    def committed(self) -> list[bytes]:
        """What a consumer gives its user: records but those of transactions in `aborted` (KIP-98)."""
        waiting = sorted(self.aborted or [], key=lambda one: one[1])
        aborting: set[int] = set()
        found: list[bytes] = []
        for batch in self.batches:
            while waiting and waiting[0][1] <= batch.last_offset:
                aborting.add(waiting.pop(0)[0])
            if is_marker(batch):
                aborting.discard(batch.producer_id)
            elif not (is_transactional(batch) and batch.producer_id in aborting):
                found += [value for value in batch.values if value is not None]
        return found

    @property
    def markers(self) -> list[Marker]:
        """The control records, in order."""
        return [marker_of(batch) for batch in self.batches if is_marker(batch)]


def see(wire: Wire, topic: str, isolation_level: int = READ_COMMITTED, *, partition: int = 0, offset: int = 0) -> Seen:
    """Read a partition once, without waiting for anything."""
    made = fetch(topic, offset, partitions=(partition,), isolation_level=isolation_level)
    part = fetched(wire.query(made))
    assert part.error_code == OK, part
    aborted = part.aborted_transactions
    pairs = None if aborted is None else [(one.producer_id, one.first_offset) for one in aborted]
    return Seen(read_batches(part.records or b""), pairs, part.high_watermark, part.last_stable_offset)


def seen_committed(wire: Wire, topic: str, *values: bytes, partition: int = 0) -> None:
    """Wait until a read_committed reader is given exactly these values: markers are written after EndTxn's answer."""
    wait_until(
        lambda: see(wire, topic, partition=partition).committed == list(values),
        within=PATIENCE_SECONDS,
        what=lambda: f"{topic}-{partition} has {values}, not {see(wire, topic, partition=partition).committed}",
    )


@dataclass(frozen=True, slots=True)
class Marker:
    """A control record that ends a transaction (KIP-98)."""

    is_commit: bool
    producer_id: int
    epoch: int
    coordinator_epoch: int


def is_marker(batch: ReadBatch) -> bool:
    """Whether a batch holds a control record."""
    return bool(batch.attributes & CONTROL)


def is_transactional(batch: ReadBatch) -> bool:
    """Whether a batch is part of a transaction."""
    return bool(batch.attributes & TRANSACTIONAL)


def marker_of(batch: ReadBatch) -> Marker:
    """Read the one control record of a batch: key `version, type`, value `version, coordinator epoch`."""
    assert batch.count == 1
    (value,) = batch.values
    assert value is not None
    (key_version, kind) = struct.unpack_from(">hh", key_of(batch))
    assert key_version == 0
    _version, coordinator_epoch = struct.unpack_from(">hi", value)
    return Marker(kind == 1, batch.producer_id, batch.producer_epoch, coordinator_epoch)


def key_of(batch: ReadBatch) -> bytes:
    """The key of a control record: the record's length, attributes and deltas, and the key's length are one byte."""
    return batch.raw[61 + 5 : 61 + 9]


def stable_end(wire: Wire, topic: str, isolation_level: int = READ_COMMITTED, *, version: int = 7) -> int:
    """What ListOffsets says is the end for a reader of this isolation."""
    made = request(
        "ListOffsets",
        version,
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[{"name": topic, "partitions": [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]}],
    )
    (found,) = wire.query(made).topics
    assert found.partitions[0].error_code == OK
    return int(found.partitions[0].offset)


def producers(wire: Wire, topic: str, partition: int = 0) -> dict[int, Any]:
    """What DescribeProducers says of a partition, by producer id."""
    made = {"topics": [{"name": topic, "partition_indexes": [partition]}]}
    (found,) = wire.call("DescribeProducers", 0, **made).topics
    assert found.partitions[0].error_code == OK, found
    return {one.producer_id: one for one in found.partitions[0].active_producers}


def write_marker(
    wire: Wire, topic: str, partition: int = 0, *, version: int = 1, coordinator_epoch: int = 0, **fields: Any
) -> int:
    """WriteTxnMarkers with one marker for one partition; the partition's error."""
    made = {
        "producer_id": fields["producer_id"],
        "producer_epoch": fields["epoch"],
        "transaction_result": fields.get("committed", True),
        "topics": [{"name": topic, "partition_indexes": [partition]}],
        "coordinator_epoch": coordinator_epoch,
    }
    if version >= 2:
        made["transaction_version"] = fields.get("transaction_version", 2)
    (marker,) = wire.call("WriteTxnMarkers", version, markers=[made]).markers
    (found,) = marker.topics
    return int(found.partitions[0].error_code)


def offset_of(wire: Wire, group: str, topic: str, *, require_stable: bool = False, version: int = 8) -> tuple[int, int]:
    """Committed offset and error of partition 0, as OffsetFetch answers."""
    wanted: dict[str, Any] = {"group_id": group, "topics": [{"name": topic, "partition_indexes": [0]}]}
    if version >= 9:
        wanted |= {"member_id": None, "member_epoch": -1}
    (found,) = wire.call("OffsetFetch", version, groups=[wanted], require_stable=require_stable).groups
    assert found.error_code == OK, found
    part = found.topics[0].partitions[0]
    return part.committed_offset, part.error_code
