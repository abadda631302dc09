from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.cli.replica_comparison import differences
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.log_dirs import BatchMark, Replica, ReplicaBatches
from pybroker.client.administration.replica_admin import parse_marks
from pybroker.client.administration.topics import NewTopic, TopicPartition
from pybroker.client.producing.producer import Producer
from pybroker.testing import Broker
from tests.support.batches import batch_of

ORDERS = TopicPartition("orders", 0)


def log(*batches: tuple[int, int, int, int], first: int = 0) -> ReplicaBatches:
    """A replica's batches: base offset, last offset, leader epoch, checksum."""
    return ReplicaBatches(first, batches[-1][1] + 1, tuple(BatchMark(*batch) for batch in batches))


SAME = log((0, 4, 1, 11), (5, 9, 1, 22))


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (SAME, 0),
        (log((0, 4, 1, 11)), 0),
        (log((5, 9, 1, 22), first=5), 0),
        (log((0, 4, 1, 11), (5, 9, 1, 23)), 1),
        (log((0, 4, 1, 11), (5, 9, 2, 22)), 1),
        (log((0, 3, 1, 10), (4, 4, 1, 12), (5, 9, 1, 22)), 2),
        (log((0, 4, 1, 11), (7, 9, 1, 22)), 2),
    ],
)
def test_what_differs_is_found_where_both_have_the_log(other: ReplicaBatches, found: int) -> None:
    assert len(list(differences({"1": SAME, "2": other}))) == found


def test_a_compacted_log_may_lack_batches_and_not_change_epochs() -> None:
    assert not list(differences({"1": SAME, "2": log((5, 9, 1, 99))}, compacted=True))
    (line,) = differences({"1": SAME, "2": log((0, 4, 1, 11), (5, 9, 2, 22))}, compacted=True)
    assert line.startswith("offset 5: replica 1 has last offset 9, leader epoch 1, checksum 22, replica 2 has")


def test_marks_are_of_whole_batches() -> None:
    raw = batch_of(b"a", b"b")
    (mark,) = parse_marks(raw + raw[:-1])
    assert (mark.base_offset, mark.last_offset) == (0, 1)
    assert mark.checksum == int.from_bytes(raw[17:21])


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a broker that has ended, with six batches."""
    directory = tmp_path_factory.mktemp("data")
    with (
        Broker(directory=directory) as broker,
        Admin(broker.bootstrap_servers) as admin,
        Producer(broker.bootstrap_servers) as producer,
    ):
        admin.create_topics([NewTopic("orders", 1)])
        for number in range(6):
            producer.send("orders", b"%d" % number)
            producer.flush()
        batches = admin.read_batches(Replica(ORDERS, 1), 0, 6)
        assert [mark.base_offset for mark in batches.batches] == list(range(6))
        assert main(["replica-verification", "--bootstrap-server", broker.bootstrap_servers]) == 0
    return directory


def verify(*directories: Path) -> int:
    return main(["replica-verification", "--directories", *map(str, directories)])


def test_a_copy_is_the_same_and_a_changed_record_is_found(
    stopped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(stopped, copy)
    assert verify(stopped, copy) == 0
    assert capsys.readouterr().out == "orders-0: the same at 2 replicas, offsets 0 to 6\n"
    (segment,) = (copy / "orders-0").glob("*.log")
    raw = bytearray(segment.read_bytes())
    raw[15] ^= 1  # the leader epoch of the first batch, which no checksum covers
    segment.write_bytes(raw)
    assert verify(stopped, copy) == 1
    assert capsys.readouterr().out.startswith("orders-0: offset 0: replica ")
    raw[-2] ^= 1
    segment.write_bytes(raw)
    assert verify(stopped, copy) == 1
    assert "has a wrong checksum" in capsys.readouterr().err


def test_one_source_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replica-verification"]) == 2
    assert "expected one of --bootstrap-server" in capsys.readouterr().err
