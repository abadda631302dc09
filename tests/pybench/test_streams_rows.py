"""The rows of the suite `streams`: arithmetic of inputs and outputs, and the topologies that must satisfy it."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from pybench.scenario import STREAMS, read_scenarios
from pybench.streams_application import TOPOLOGIES
from pybench.streams_rows import CHECKED, Input, Output, check_output, percentile
from pybroker.streams import StreamsBuilder
from pybroker.streams.serdes import BYTES
from pybroker.streams.testing import TopologyTestDriver

BEGIN_MS = 600_000
GIVEN = Input(records=600, keys=200, size=100)


def test_each_key_has_equally_many_records_in_no_order() -> None:
    keys = [GIVEN.key(number) for number in range(GIVEN.records)]
    assert set(Counter(keys).values()) == {3}
    assert keys[:200] != sorted(keys[:200])


def test_values_are_json_of_the_size_with_amounts_up_to_1000() -> None:
    given = Input(records=2_000, keys=2_000, size=100)
    values = [given.value(number) for number in range(given.records)]
    assert {len(value) for value in values} == {100}
    assert [json.loads(value)["id"] for value in values] == list(range(2_000))
    assert sum(json.loads(value)["amount"] for value in values) == 2 * (1000 * 1001 // 2)


def test_a_row_of_a_table_begins_with_its_key() -> None:
    value = Input(records=10, keys=10, size=50, is_table=True).value(3)
    # The last digit of three times the stride is 1, and there are ten keys.
    assert value == b"k000000001" + b"x" * 40


def test_batches_contain_every_record_once_with_timestamps_over_five_minutes() -> None:
    batches = list(GIVEN.batches(BEGIN_MS, 250))
    assert [len(keys) for keys, _, _ in batches] == [250, 250, 100]
    times = [at for _, _, of_batch in batches for at in of_batch]
    assert times == sorted(times)
    assert (times[0], times[-1]) == (BEGIN_MS, BEGIN_MS + 299_500)


@pytest.mark.parametrize("row", CHECKED)
def test_the_output_of_the_topology_of_a_row_is_the_expected_one(row: str) -> None:
    # Records with distinct keys where the row has no aggregation, as in its scenario. Half of the amounts are large.
    given = GIVEN if not row.startswith("stateless") else Input(records=1_000, keys=1_000, size=100)
    builder = StreamsBuilder()
    TOPOLOGIES[row](builder, "in", "out")
    with TopologyTestDriver(builder.build(), {"default.dsl.store": "in_memory"}) as driver:
        source = driver.create_input_topic("in", BYTES, BYTES)
        for keys, values, times in given.batches(BEGIN_MS, 100):
            for key, value, at in zip(keys, values, times, strict=True):
                source.pipe_input(key.encode(), value, at)
        written = driver.create_output_topic("out", BYTES, BYTES).read_records()
    output = Output(len(written), {record.key: record.value for record in written})
    assert check_output(row, given, output) == ""
    removed = next(iter(output.last))
    rest = {one: value for one, value in output.last.items() if one != removed}
    one_missing = Output(output.rows - 1, rest)
    assert check_output(row, given, one_missing).startswith(f"output of row {row}: ")


def test_the_message_of_a_wrong_output_has_both_sums() -> None:
    given = Input(records=4, keys=2, size=100)
    output = Output(4, {b"k0": (2).to_bytes(8, "big"), b"k1": (1).to_bytes(8, "big")})
    expected = "output of row count: {'keys': 2, 'sum': 3}, expected {'keys': 2, 'sum': 4}"
    assert check_output("count", given, output) == expected


@pytest.mark.parametrize(("percent", "expected"), [(5, 15), (30, 20), (40, 20), (50, 35), (100, 50)])
def test_percentiles_are_those_of_nearest_rank(percent: float, expected: float) -> None:
    assert percentile([15, 20, 35, 40, 50], percent) == expected


def test_only_rows_that_do_not_send_records_keep_their_topics_between_rounds() -> None:
    rows = {s.properties["row"]: s.fill for s in read_scenarios() if s.suite == STREAMS}
    assert rows == {"stateless": True, "count": True, "windows": True, "restore": True, "map": False, "idle": False}
