"""A wrong argument is an error of the call that has it, which names the argument, the value and a right one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from pybroker.client import (
    Admin,
    ArgumentError,
    AsyncAdmin,
    AsyncConsumer,
    AsyncFetcher,
    ColumnFetcher,
    Consumer,
    ConsumeTransformProduce,
    Fetcher,
    RebalanceListener,
    TopicPartition,
)
from pybroker.client.arguments import Arguments
from pybroker.client.errors import SettingError

NOWHERE = "127.0.0.1:1"
T0 = TopicPartition("t", 0)
KINDS = [
    Admin,
    AsyncAdmin,
    AsyncConsumer,
    AsyncFetcher,
    ColumnFetcher,
    Consumer,
    ConsumeTransformProduce,
    Fetcher,
]
WRONG: list[tuple[Any, Callable[[Any], Any], str]] = [
    (
        Consumer,
        lambda c: c.assign([("t", 0)]),
        "('t', 0) is a tuple; expected TopicPartition, as partitions=[TopicPart",
    ),
    (Consumer, lambda c: c.assign("t"), "'t' is a str; expected Collection[TopicPartition], as partitions=["),
    (Consumer, lambda c: c.assign(p for p in [T0]), "is a generator; expected Collection[TopicPartition]"),
    (
        Consumer,
        lambda c: c.subscribe("t"),
        "subscribe(topics='t'): 't' is a str; expected Collection[str], as topics=[",
    ),
    (Consumer, lambda c: c.subscribe([b"t"]), "b't' is a bytes; expected str"),
    (Consumer, lambda c: c.subscribe(["t"], listener=RebalanceListener), "expected RebalanceListener | None"),
    (Consumer, lambda c: c.seek(("t", 0), 1), "seek(partition=('t', 0)): ('t', 0) is a tuple; expected TopicPartition"),
    (Consumer, lambda c: c.seek(T0, "1"), "seek(offset='1'): '1' is a str; expected int | OffsetAndMetadata"),
    (Consumer, lambda c: c.seek_to_end([T0]), "is a list; expected TopicPartition"),
    (Consumer, lambda c: c.commit({T0: (1, "")}), "(1, '') is a tuple; expected OffsetAndMetadata | int"),
    (Consumer, lambda c: c.poll("1"), "poll(timeout_s='1'): '1' is a str; expected float, as timeout_s=1.0"),
    (Fetcher, lambda f: f.assign({("t", 0): 1}), "Fetcher.assign(partitions={('t', 0): 1}): ('t', 0) is a tuple"),
    (ColumnFetcher, lambda f: f.take(columns="key"), "'key' is a str; expected Sequence[str]"),
    (
        Admin,
        lambda a: a.create_topics("t"),
        "Admin.create_topics(topics='t'): 't' is a str; expected Sequence[NewTopic",
    ),
    (
        Admin,
        lambda a: a.create_topics([("t", 1)]),
        "('t', 1) is a tuple; expected NewTopic | str, as topics=[NewTopic(",
    ),
    (Admin, lambda a: a.create_partitions({"t": 3}), "3 is a int; expected MorePartitions"),
    (Admin, lambda a: a.delete_topics("t"), "'t' is a str; expected Sequence[str]"),
    (Admin, lambda a: a.list_offsets([T0]), "expected Mapping[TopicPartition, int]"),
]


@pytest.mark.parametrize(("kind", "call", "sentence"), WRONG)
def test_a_wrong_type_is_named_with_a_right_one(kind: Any, call: Callable[[Any], Any], sentence: str) -> None:
    with kind(NOWHERE) as client, pytest.raises(ArgumentError, match=re.escape(sentence)) as met:
        call(client)
    assert isinstance(met.value, TypeError)


@pytest.mark.parametrize("wrong", [float("nan"), -1, -0.5])
def test_a_time_that_is_negative_or_no_number_is_refused(wrong: float) -> None:
    with Consumer(NOWHERE) as consumer, Fetcher(NOWHERE) as fetcher, Admin(NOWHERE) as admin:
        calls = (consumer.poll, fetcher.poll, lambda time: admin.wait_for_leaders("t", time), consumer.close)
        for call in calls:
            with pytest.raises(SettingError, match=rf"timeout_s={wrong}\): expected a number >= 0, as timeout_s=1.0"):
                call(wrong)
        with pytest.raises(SettingError, match="timeout_ms=-1"):
            admin.create_topics(["t"], timeout_ms=-1)
        assert issubclass(SettingError, ValueError)
        assert consumer.poll(0) == [], "the next call is not disturbed"


def test_an_unknown_keyword_shows_where_settings_are_given() -> None:
    for keywords in ({"group": "g"}, {"group_id": "g"}):
        with pytest.raises(ArgumentError, match=re.escape("Consumer('localhost:9092', {'group.id': 'g'})")):
            Consumer(NOWHERE, **keywords)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"Consumer\(\): bootstrap_servers is missing"):
        Consumer()  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", KINDS)
def test_the_annotations_of_every_public_method_can_be_evaluated(kind: type) -> None:
    functions = [getattr(kind, name) for name in dir(kind) if not name.startswith("_")]
    checked = [function for function in functions if inspect.isfunction(function)]
    assert checked
    assert all(hasattr(function, "__wrapped__") for function in checked), "each checks its arguments"
    for function in checked:
        Arguments(inspect.unwrap(function))
