"""Claims about what a task reads while the log changes under it; a scripted node stands for the brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow
import pytest

from pybroker.client import TopicPartition
from pybroker_spark.source import fetchers
from pybroker_spark.source.errors import DataLossError
from pybroker_spark.source.options import parse_read
from pybroker_spark.source.ranges import OffsetRange
from pybroker_spark.source.reader import RangePartition, read_range
from tests.cluster.test_client_leaders import fill
from tests.support.scripted_node import NEWEST, ScriptedNode

WANTED = OffsetRange(TopicPartition("t", 0), 0, 6)


@pytest.fixture
def node() -> Iterator[ScriptedNode]:
    """A leader that holds offsets 0 to 3."""
    with ScriptedNode(node=1, served=NEWEST) as leader:
        fill(leader)
        yield leader
        while fetchers._kept:
            fetchers._kept.pop()[1].close()


def begun(node: ScriptedNode, **options: str) -> tuple[list[int], Iterator[pyarrow.RecordBatch]]:
    """What a task has read when a new leader begins its epoch without offsets 2 and 3, and the rest to read."""
    given = {"kafka.bootstrap.servers": node.bootstrap_servers, "subscribe": "t", **options}
    batches = read_range(parse_read(given), ("offset",), RangePartition(WANTED))
    read: list[int] = []
    while len(read) < 4:
        read += next(batches).column(0).to_pylist()
    node.lead_anew(2)
    fill(node, values=range(2, 6))
    return read, batches


def test_what_was_read_and_then_cut_is_a_loss_by_its_offset(node: ScriptedNode) -> None:
    read, rest = begun(node)
    assert read == [0, 1, 2, 3]
    with pytest.raises(DataLossError, match=r"'t' partition 0 .* was read in part, and cut: .* differs from offset 2 "):
        next(rest)


def test_without_fail_on_data_loss_what_came_in_its_place_is_read(node: ScriptedNode) -> None:
    read, rest = begun(node, failOnDataLoss="false")
    for batch in rest:
        read += batch.column(0).to_pylist()
    assert read == [0, 1, 2, 3, 2, 3, 4, 5]
