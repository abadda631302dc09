"""Claims about `pybroker_spark.source.offsets`."""

from __future__ import annotations

import json

import pytest

from pybroker.client import TopicPartition
from pybroker_spark.source.errors import OptionError
from pybroker_spark.source.offsets import (
    parse_assignment,
    parse_offsets,
    parse_times,
    read_beginning,
    read_checkpoint,
    with_beginning,
    write_checkpoint,
)

ORDERS = [TopicPartition("orders", index) for index in range(12)]


def test_offsets_are_read_as_the_kafka_connector_writes_them() -> None:
    offsets = parse_offsets("startingOffsets", '{"orders":{"0":23,"1":-1},"users":{"0":-2}}')
    assert offsets == {ORDERS[0]: 23, ORDERS[1]: -1, TopicPartition("users", 0): -2}


def test_an_assignment_is_a_list_of_partitions_by_topic() -> None:
    assert parse_assignment("assign", '{"orders":[0,2],"users":[1]}') == {
        ORDERS[0],
        ORDERS[2],
        TopicPartition("users", 1),
    }


def test_a_checkpoint_is_in_one_order_and_comes_back() -> None:
    offsets = {TopicPartition("b", 0): 7, ORDERS[10]: 1, ORDERS[9]: 2}
    written = json.dumps(write_checkpoint(offsets))
    assert written == '{"b": {"0": 7}, "orders": {"9": 2, "10": 1}}'
    assert read_checkpoint(json.loads(written)) == offsets


def test_the_end_of_a_first_micro_batch_may_hold_where_it_began() -> None:
    begin, end = {TopicPartition("a-b", 1): 3}, {TopicPartition("a-b", 1): 7, ORDERS[0]: 1}
    written = json.loads(json.dumps(with_beginning(write_checkpoint(end), begin)))
    assert read_checkpoint(written) == end
    assert read_beginning(written) == begin
    assert read_beginning(write_checkpoint(end)) is None


@pytest.mark.parametrize(
    "text", ["", "latest!", "[1]", "{}", '{"orders":5}', '{"orders":{"a":1}}', '{"orders":{"0":1.5}}', '{"t":{"0":-3}}']
)
def test_what_are_no_offsets_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(
        OptionError, match=r'^endingOffsets=.*: must be JSON like \{"topicA":\{"0":23,"1":-1\}'
    ) as refusal:
        parse_offsets("endingOffsets", text)
    assert f"endingOffsets={text}:" in str(refusal.value)


@pytest.mark.parametrize("text", ["orders", '{"orders":0}', '{"orders":["a"]}', "{}", '{"orders":[true]}'])
def test_what_is_no_assignment_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(OptionError, match=r'^assign=.*: must be JSON like \{"topicA":\[0,1\]'):
        parse_assignment("assign", text)


def test_what_are_no_times_is_refused_with_the_form() -> None:
    with pytest.raises(OptionError, match=r"milliseconds since 1970"):
        parse_times("startingOffsetsByTimestamp", '{"orders":{"0":"noon"}}')
