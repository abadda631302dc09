from __future__ import annotations

from typing import Any

import pytest

from pybroker.streams import (
    CONTINUE,
    FAIL,
    STRING,
    ErrorContext,
    Processor,
    Record,
    StreamsBuilder,
    StreamsError,
    log_and_continue,
    log_and_fail,
)
from pybroker.streams.exception_handlers import Handlers
from pybroker.streams.testing import TopologyTestDriver

CONTEXT = ErrorContext("0_1", "node", "in", 1, 7, 99, b"k", b"v", (("h", b"x"),))


def test_named_handlers_write_dead_letters_with_kafkas_headers() -> None:
    handlers = Handlers(dead_letter_topic="dead")
    for handler, continues in ((log_and_fail, False), (log_and_continue, True)):
        response = handlers.decide(handler, CONTEXT, ValueError("no"))
        (letter,) = response.dead_letters
        assert response.continues is continues
        assert (letter.topic, letter.key, letter.value, letter.timestamp) == ("dead", b"k", b"v", 99)
        headers = dict(letter.headers)
        assert headers["h"] == b"x"
        assert headers["__streams.errors.exception"] == b"builtins.ValueError"
        assert headers["__streams.errors.message"] == b"no"
        assert headers["__streams.errors.topic"] == b"in"
        assert (headers["__streams.errors.partition"], headers["__streams.errors.offset"]) == (b"1", b"7")
        assert b"ValueError: no" in (headers["__streams.errors.stacktrace"] or b"")


def test_a_handler_of_the_program_decides_about_dead_letters_itself() -> None:
    handlers = Handlers(dead_letter_topic="dead")
    assert handlers.decide(lambda _context, _error: CONTINUE, CONTEXT, ValueError()) is CONTINUE


class _Picky(Processor[str, str]):
    def process(self, record: Record[str, str]) -> None:
        if record.value == "bad":
            raise ValueError("bad value")
        self.context.forward(record)


def _driver(decide: Any) -> tuple[TopologyTestDriver, list[ErrorContext]]:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde=STRING, value_serde=STRING)
    stream.process(_Picky, name="picky").to("out", key_serde=STRING, value_serde=STRING)
    stream.to("copy", key_serde=STRING, value_serde=STRING)
    driver = TopologyTestDriver(builder.build())
    seen: list[ErrorContext] = []

    def handler(context: ErrorContext, _error: Exception) -> Any:
        seen.append(context)
        return decide

    driver._task.handlers = Handlers(processing=handler)
    return driver, seen


def test_a_node_that_fails_skips_its_record_and_its_siblings_get_it() -> None:
    driver, seen = _driver(CONTINUE)
    with driver:
        topic = driver.create_input_topic("in", STRING, STRING)
        topic.pipe_key_values([("a", "good"), ("b", "bad"), ("c", "good")])
        out, copy = (driver.create_output_topic(name, STRING, STRING) for name in ("out", "copy"))
        assert out.read_key_values() == [("a", "good"), ("c", "good")]
        assert [key for key, _ in copy.read_key_values()] == ["a", "b", "c"]
        assert driver.dropped_records == 1
    (context,) = seen
    assert (context.node, context.topic, context.offset) == ("picky", "in", 1)
    assert (context.key, context.value, context.record.value) == (b"b", b"bad", "bad")


def test_a_handler_that_fails_is_called_once_and_the_error_names_the_record() -> None:
    driver, seen = _driver(FAIL)
    with driver, pytest.raises(StreamsError, match=r"failed at record in-0 offset 0 .* bad value"):
        driver.create_input_topic("in", STRING, STRING).pipe_input("b", "bad")
    assert len(seen) == 1
