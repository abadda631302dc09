"""Small files of a node that cannot be read as what they are: a start continues, or one line names the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pybroker.node import NodeError
from pybroker.testing import Broker
from tests.support.batches import batch_of
from tests.support.wire import Wire, produce, produced

META_LOG = "__cluster_metadata-0"
CONTENTS: dict[str, bytes | None] = {
    "not-utf-8": b"\xff\xfe\x80",
    "empty": b"",
    "zeros": bytes(64),
    "digits": b"0\n1\nt 0 " + b"9" * 5000 + b"\n",
    "a-directory": None,
}
# Bytes that are well formed in one of the files, with values that none of them can have.
OUT_OF_RANGE = {
    "meta.properties": [
        b"version=1\ncluster.id=c\nnode.id=\xc2\xb2\n",
        b"version=1\ncluster.id=c\nnode.id=%s\n" % (b"9" * 5000),
        b"version=1\ncluster.id=c\nnode.id=1\ndirectory.id=short\n",
        b"version=1\ncluster.id=\\uzzzz\nnode.id=1\n",
        b"version=1\ncluster.id=\\ud800\nnode.id=1\n",
    ],
    ".kafka_cleanshutdown": [b'{"version":0,"brokerEpoch":%s}' % (b"9" * digits) for digits in (30, 5000)],
    f"{META_LOG}/quorum-state": [
        b'{"data_version":0,"leaderEpoch":%s,"votedId":1}' % (b"9" * digits) for digits in (30, 5000)
    ],
}
FILES = (
    "meta.properties",
    "bootstrap.checkpoint",
    ".kafka_cleanshutdown",
    ".lock",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
    "cleaner-last-passes",
    f"{META_LOG}/quorum-state",
    f"{META_LOG}/leader-epoch-checkpoint",
    f"{META_LOG}/00000000000000000000-0000000000.checkpoint",
    f"{META_LOG}/accept-loss",
    "t-0/partition.metadata",
    "t-0/leader-epoch-checkpoint",
    "t-0/recovery-report",
)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker leaves that had a topic and was stopped."""
    directory = tmp_path_factory.mktemp("left") / "data"
    with Broker(directory=directory) as broker, Wire(broker.bootstrap_servers) as wire:
        new = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        wire.call("CreateTopics", 7, topics=[new], timeout_ms=10_000)
        assert produced(wire.query(produce("t", batch_of(b"record")))).error_code == 0
    return directory


ROWS = [
    *((name, content) for name in FILES for content in CONTENTS.values()),
    *((name, content) for name, contents in OUT_OF_RANGE.items() for content in contents),
]


@pytest.mark.parametrize(("name", "content"), ROWS)
def test_a_start_continues_or_names_the_file_in_one_line(
    left: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    data = tmp_path / "data"
    shutil.copytree(left, data)
    path = data / name
    path.unlink(missing_ok=True)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    broker = Broker(directory=data)
    try:
        broker.start()
    except NodeError as error:
        refusal: str | None = str(error)
    else:
        broker.stop()
        refusal = None
    assert refusal is None or (str(path) in refusal and len(refusal.splitlines()) == 1)


@pytest.mark.parametrize("name", [".kafka_cleanshutdown", "recovery-point-offset-checkpoint"])
def test_a_failure_of_the_only_log_directory_refuses_the_start(left: Path, tmp_path: Path, name: str) -> None:
    data = tmp_path / "data"
    shutil.copytree(left, data)
    (data / name).unlink(missing_ok=True)
    (data / name).mkdir()
    with pytest.raises(NodeError, match=f"^log directory {data} failed: .*{data / name}'$"):
        Broker(directory=data).start()
