"""What a broker writes beside a log for its producers, as Kafka's dump tool reads it.

librdkafka writes the records, and its delivery reports have the offsets. Transactions overlap, and one stays open.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import confluent_kafka
import pytest

from pybroker.testing import Broker
from tests.conformance.dump_tool import kafkas
from tests.support import programs
from tests.support.conditions import wait_until

pytestmark = pytest.mark.java

SEGMENT = f"{0:020}"
SETTINGS = {"transaction.state.log.num.partitions": "1", "log.index.interval.bytes": "100"}
_BATCH = re.compile(
    r"^baseOffset: (\d+) lastOffset: (\d+) .* lastSequence: (-?\d+) producerId: (\d+) producerEpoch: (\d+) .*"
    r" isControl: (true|false) .* CreateTime: (\d+) "
)
_MARKER = re.compile(r" endTxnMarker: (?:COMMIT|ABORT) coordinatorEpoch: (\d+)")
_PRODUCER = re.compile(
    r"^producerId: (\d+) producerEpoch: (\d+) coordinatorEpoch: (-?\d+) currentTxnFirstOffset: (\S+) "
    r"lastTimestamp: (\d+) firstSequence: \d+ lastSequence: (\d+) lastOffset: (\d+) ",
    re.M,
)
_ABORTED = re.compile(
    r"^version: 0 producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", re.M
)


class Writers:
    """Producers by name, and the number of offsets that are taken."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._made: dict[str, confluent_kafka.Producer] = {}
        settings = {"bootstrap.servers": servers, "group.id": "unused", "isolation.level": "read_uncommitted"}
        self._reader = confluent_kafka.Consumer(settings)
        self._taken = 0

    def begin(self, name: str) -> None:
        """Begin a transaction of the producer with this transactional id."""
        if name not in self._made:
            self._made[name] = confluent_kafka.Producer({"bootstrap.servers": self._servers, "transactional.id": name})
            self._made[name].init_transactions(60)
        self._made[name].begin_transaction()

    def write(self, name: str, count: int = 1) -> None:
        """Write records; a producer that has begun no transaction is idempotent."""
        if name not in self._made:
            settings = {"bootstrap.servers": self._servers, "enable.idempotence": True}
            self._made[name] = confluent_kafka.Producer(settings)
        for _ in range(count):
            self._made[name].produce("t", b"v" * 80, partition=0)
        assert self._made[name].flush(60) == 0
        self._wait_for(count)

    def end(self, name: str, *, commit: bool) -> None:
        """End a transaction; its marker is in the log when this returns."""
        producer = self._made[name]
        (producer.commit_transaction if commit else producer.abort_transaction)(60)
        self._wait_for(1)

    def _wait_for(self, further: int) -> None:
        self._taken += further
        partition = confluent_kafka.TopicPartition("t", 0)

        def is_there() -> bool:
            return bool(self._reader.get_watermark_offsets(partition, timeout=60)[1] == self._taken)

        wait_until(is_there, within=60, what=f"{self._taken} offsets are taken")


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a partition whose broker has ended."""
    programs.kafka_tools()
    data = tmp_path_factory.mktemp("data")
    with Broker(directory=data, properties=SETTINGS) as broker:
        writers = Writers(broker.bootstrap_servers)
        writers.write("idempotent", 3)
        writers.begin("a")
        writers.write("a")  # offset 3
        writers.begin("b")
        writers.write("b")  # offset 4
        writers.write("a")
        writers.end("b", commit=False)  # offset 6
        writers.write("idempotent", 2)
        writers.end("a", commit=False)  # offset 9
        writers.begin("open")
        writers.write("open")  # offset 10
        writers.begin("b")
        writers.write("b")
        writers.end("b", commit=True)
    return data / "t-0"


def dumped(partition: Path, tmp_path: Path, file: str, *options: str) -> str:
    """Kafka's dump of a file."""
    (found,) = kafkas([[*options, "--files", str(partition / file)]], tmp_path)
    assert (found.status, found.err) == (0, "")
    return found.out


def test_the_snapshot_has_the_producers_that_kafka_finds_in_the_log(partition: Path, tmp_path: Path) -> None:
    expected: dict[int, tuple[int, int, str, int, int, int]] = {}
    last: dict[int, tuple[int, int, int]] = {}
    lines = dumped(partition, tmp_path, f"{SEGMENT}.log", "--print-data-log").splitlines()
    for line, following in itertools.pairwise([*lines, ""]):
        if (batch := _BATCH.match(line)) is None:
            continue
        first, end, sequence, producer, epoch = map(int, batch.groups()[:5])
        _, coordinator, begun, *_ = expected.get(producer, (0, -1, "OptionalLong.empty", 0, 0, 0))
        if batch[6] == "true":
            marker = _MARKER.search(following)
            assert marker is not None
            coordinator, begun = int(marker[1]), "OptionalLong.empty"
        else:
            last[producer] = (epoch, sequence, end)
            if "isTransactional: true" in line and begun == "OptionalLong.empty":
                begun = f"OptionalLong[{first}]"
        assert last[producer][0] == epoch
        expected[producer] = (epoch, coordinator, begun, int(batch[7]), *last[producer][1:])
    assert len(expected) == 4
    assert [begun for _, _, begun, *_ in expected.values()].count("OptionalLong[10]") == 1
    found = {}
    for match in _PRODUCER.finditer(dumped(partition, tmp_path, f"{13:020}.snapshot")):
        producer, epoch, coordinator = (int(match[group]) for group in (1, 2, 3))
        # The last entry of an id is the one that Kafka keeps.
        found[producer] = (epoch, coordinator, match[4], *(int(match[group]) for group in (5, 6, 7)))
    assert found == expected


def test_the_transaction_index_has_the_aborted_transactions_in_the_order_of_their_markers(
    partition: Path, tmp_path: Path
) -> None:
    index = dumped(partition, tmp_path, f"{SEGMENT}.txnindex")
    found = [tuple(map(int, match.groups())) for match in _ABORTED.finditer(index)]
    (b, *of_b), (a, *of_a) = found
    assert a != b
    assert (of_b, of_a) == ([4, 6, 3], [3, 9, 10]), "b's abort leaves the transaction of a open, from offset 3 on"


def test_the_indexes_lead_to_the_batches(partition: Path, tmp_path: Path) -> None:
    for suffix in (".index", ".timeindex"):
        found = dumped(partition, tmp_path, f"{SEGMENT}{suffix}", "--verify-index-only")
        assert found == f"Dumping {partition / SEGMENT}{suffix}\n"
    entries = dumped(partition, tmp_path, f"{SEGMENT}.index")
    assert entries.count("offset: ") > 3
