"""Tallies of Arrow batches, and the report that is made of them."""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pybroker_spark.audit.expected import Expected
from pybroker_spark.audit.report import build_report
from pybroker_spark.audit.tally import Pieces, Tally, merged

SENT_US = 1_700_000_000_000_000
Row = tuple[int, int, int]
"""Partition, producer and sequence."""


def stamp(producer: int, sequence: int, sent_us: int = SENT_US, filler: bytes = b"") -> bytes:
    return struct.pack(">QQq", producer, sequence, sent_us) + filler


def batch_of(
    values: Sequence[bytes | None], partitions: Sequence[int], first_offset: int = 0, time_type: int = 1
) -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array(["t"] * count),
            "partition": pa.array(partitions, pa.int32()),
            "offset": pa.array(range(first_offset, first_offset + count), pa.int64()),
            "timestamp": pa.array([SENT_US + 1000] * count, pa.timestamp("us", "UTC")),
            "timestampType": pa.array([time_type] * count, pa.int32()),
            "value": pa.array(values, pa.binary()),
        }
    )


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 9)), max_size=60),
    st.lists(st.integers(0, 60), max_size=6),
    st.randoms(),
)
def test_pieces_in_any_order_give_the_tallies_of_the_whole(rows: list[Row], cuts: list[int], random: object) -> None:
    batch = batch_of([stamp(producer, sequence) for _, producer, sequence in rows], [p for p, _, _ in rows])
    ends = sorted({min(cut, len(rows)) for cut in cuts} | {len(rows)})
    pieces = []
    for begin, end in zip([0, *ends], ends, strict=False):
        part = Pieces()
        part.add(batch.slice(begin, end - begin))
        pieces += pickle.loads(pickle.dumps(part.all()))
    random.shuffle(pieces)  # type: ignore[attr-defined]
    report = build_report(merged(pieces))
    for finding in report.findings:
        mine = [s for partition, producer, s in rows if (partition, producer) == (finding.partition, finding.producer)]
        assert finding.records == len(mine)
        assert finding.duplicated == len(mine) - len(set(mine))
        assert finding.lost == len(set(range(max(mine))) - set(mine))
    assert report.records == len(rows)
    assert report.is_exactly_once == (bool(rows) and report.lost == 0 and report.duplicated == 0)


def test_what_is_amiss_is_named_by_partition_and_offset() -> None:
    pieces = Pieces()
    pieces.add(batch_of([stamp(7, s) for s in (0, 1, 2, 5, 1, 6)], [3] * 6, first_offset=100))
    report = build_report(merged(pieces.all()), [Expected("t", 3, 7, 9), Expected("t", 4, 7, 2)])
    table = report.as_table()
    assert (report.lost, report.duplicated, report.reordered) == (4 + 2, 1, 0)
    assert "t-3 producer 7: lost sequences 3-4, 7-8" in table
    assert "t-4 producer 7: lost sequences 0-1" in table
    assert "t-3 offset 104: sequence 1 of producer 7 again" in table
    assert table.endswith("6 records: 6 lost, 1 duplicated, 0 reordered: NOT exactly once")
    value = json.loads(report.as_json())
    assert (value["lost"], value["exactly_once"], value["latency"]["p50"]) == (6, False, 1000)
    assert "LogAppendTime" in value["latency"]["to"]
    assert value["latency"]["means_nothing_of"] == 0
    assert "means nothing" not in table


def test_a_latency_to_a_clients_own_time_is_said_to_mean_nothing() -> None:
    pieces = Pieces()
    pieces.add(batch_of([stamp(7, s) for s in range(4)] + [b"other"], [0] * 5, time_type=0))
    report = build_report(merged(pieces.all()))
    assert report.of_client_clocks == 4
    assert "the latency of 4 records means nothing: their time is a client's own" in report.as_table()
    assert " ms" not in report.as_table()


def test_what_a_producer_gave_up_is_not_lost() -> None:
    pieces = Pieces()
    pieces.add(batch_of([stamp(7, s) for s in (0, 1, 3, 4)], [0] * 4))
    given_up = build_report(merged(pieces.all()), [Expected("t", 0, 7, 4, failed=1)])
    assert (given_up.lost, given_up.findings[0].given_up) == (0, 1)
    lost = build_report(merged(pieces.all()), [Expected("t", 0, 7, 5, failed=1)])
    assert (lost.lost, lost.findings[0].given_up) == (1, 1)
    assert "lost sequences 2, 5 (1 of them given up by the producer)" in lost.as_table()


def test_a_sequence_that_comes_again_in_a_later_piece_is_named_by_that_piece() -> None:
    pieces = []
    for first in (0, 10):
        part = Pieces()
        part.add(batch_of([stamp(1, s) for s in range(5)], [0] * 5, first_offset=first))
        pieces += part.all()
    (tally,) = merged(pieces).values()
    assert [(d.offset, d.sequence) for d in tally.duplicates] == [(10, 0)]
    assert tally.by_producer[1].duplicated == 5


def test_records_without_a_stamp_are_counted_and_not_judged() -> None:
    pieces = Pieces()
    pieces.add(batch_of([b"plain", None, stamp(0, 0)], [0, 0, 0]))
    report = build_report(merged(pieces.all()))
    assert (report.records, report.unstamped, report.is_exactly_once) == (1, 2, True)
    assert "2 records have no stamp" in report.as_table()


def test_an_empty_tally_adds_nothing() -> None:
    tally = Tally()
    tally.then(Tally())
    assert (tally.records, tally.by_producer) == (0, {})
