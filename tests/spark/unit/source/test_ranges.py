"""Claims about `pybroker_spark.source.ranges`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pybroker.client import TopicPartition
from pybroker_spark.source.ranges import OffsetRange, limit_rows, limit_shares, split

P = [TopicPartition("orders", index) for index in range(6)]
SPANS = st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**6)), min_size=1, max_size=6)


def ranges(spans: list[tuple[int, int]]) -> list[OffsetRange]:
    return [OffsetRange(P[index], start, start + size) for index, (start, size) in enumerate(spans)]


def sizes(pieces: list[OffsetRange]) -> list[int]:
    return [piece.size for piece in pieces]


def test_one_task_reads_one_partition_unless_more_are_wanted() -> None:
    assert sizes(split(ranges([(0, 10), (5, 0), (7, 3)]))) == [10, 3]
    assert sizes(split(ranges([(0, 10), (7, 3)]), min_partitions=2)) == [10, 3]


def test_large_partitions_are_cut_and_small_ones_left_whole() -> None:
    # The connector's own example: of 4 tasks a partition of 10 among 100 records keeps one, the other has three.
    pieces = split(ranges([(0, 10), (50, 90)]), min_partitions=4)
    assert sizes(pieces) == [10, 30, 30, 30]
    assert [(piece.partition, piece.start) for piece in pieces] == [(P[0], 0), (P[1], 50), (P[1], 80), (P[1], 110)]


def test_what_does_not_divide_evenly_goes_to_the_last_piece() -> None:
    assert sizes(split(ranges([(0, 11)]), min_partitions=3)) == [3, 4, 4]


def test_no_task_reads_more_than_the_most_records() -> None:
    assert sizes(split(ranges([(0, 25), (0, 4)]), max_records=10)) == [8, 8, 9, 4]


@given(SPANS, st.integers(1, 40), st.one_of(st.none(), st.integers(10**4, 10**6)))
def test_pieces_are_the_ranges_without_gap_or_overlap(
    spans: list[tuple[int, int]], min_partitions: int, max_records: int | None
) -> None:
    wanted = [one for one in ranges(spans) if one.size]
    pieces = split(ranges(spans), min_partitions=min_partitions, max_records=max_records)
    joined: list[OffsetRange] = []
    for piece in pieces:
        assert piece.size > 0
        assert max_records is None or piece.size <= max_records
        if joined and joined[-1].partition == piece.partition:
            assert joined[-1].end == piece.start
            joined[-1] = OffsetRange(piece.partition, joined[-1].start, piece.end)
        else:
            joined.append(piece)
    assert joined == wanted


def test_a_limit_is_shared_by_what_waits() -> None:
    start = {P[0]: 0, P[1]: 100}
    assert limit_rows(10, start, {P[0]: 30, P[1]: 170}) == {P[0]: 3, P[1]: 107}
    assert limit_rows(1000, start, {P[0]: 30, P[1]: 170}) == {P[0]: 30, P[1]: 170}


def test_a_partition_with_little_waiting_is_not_starved() -> None:
    assert limit_rows(10, {P[0]: 0, P[1]: 0}, {P[0]: 1, P[1]: 10**6}) == {P[0]: 1, P[1]: 9}


@given(SPANS, st.integers(1, 10**7))
def test_a_limit_is_kept_but_for_one_record_a_partition(spans: list[tuple[int, int]], limit: int) -> None:
    start = {one.partition: one.start for one in ranges(spans)}
    end = {one.partition: one.end for one in ranges(spans)}
    limited = limit_rows(limit, start, end)
    assert limited.keys() == end.keys()
    assert all(start[p] <= limited[p] <= end[p] for p in end)
    assert all(limited[p] > start[p] for p in end if end[p] > start[p])
    assert sum(limited[p] - start[p] for p in end) <= limit + len(end)


def test_dear_records_use_up_a_limit_of_bytes_sooner() -> None:
    start, end = {P[0]: 0, P[1]: 0}, {P[0]: 1000, P[1]: 1000}
    limited = limit_shares(110_000, start, end, {P[0]: 100.0, P[1]: 1000.0})
    assert limited == {P[0]: 100, P[1]: 100}
