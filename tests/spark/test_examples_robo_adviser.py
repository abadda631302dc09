"""Claims about the robo-adviser: highs and lows of N trading days (`spark/examples/robo_adviser.py`)."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import robo_adviser
from examples.robo_adviser import History, Signal
from tests.spark.micro_batches import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BOOK = """\
'平安银行','000001','2017-03-01 00:00:00.000',9.4800,9.4900,9.5500,9.4700,9.4900
'平安银行','000001','2017-02-28 00:00:00.000',9.4300,9.4300,9.5100,9.4200,9.4800
'平安银行','000001','2017-02-27 00:00:00.000',9.5000,9.5000,9.5000,9.4200,9.4300
'山东黄金','600547','2017-03-01 00:00:00.000',37.0700,36.7000,36.8800,36.6000,36.8200
'山东黄金','600547','2017-02-28 00:00:00.000',37.4500,37.1100,37.2400,36.9000,37.0700
'山东黄金','600547','2017-02-27 00:00:00.000',37.5100,37.5500,37.9900,37.4000,37.4500
'海通证券','600837','2017-03-01 00:00:00.000',15.6700,15.7000,15.7200,15.6000,15.6100
'海通证券','600837','2017-02-28 00:00:00.000',15.7400,15.7200,15.8300,15.6400,15.6700
'海通证券','600837','2017-02-27 00:00:00.000',15.8100,15.7700,15.9000,15.6500,15.7400
"""
LAST = datetime.date(2017, 3, 1)
SELECTED = [
    ("000001", "平安银行", LAST, "high", 9.55, 3),
    ("600547", "山东黄金", LAST, "low", 36.6, 3),
    ("600837", "海通证券", LAST, "low", 15.6, 3),
]
"""What the book's rule selects of its nine lines, seen from their last day."""

RECORD = "key binary, value binary, topic string, partition int, offset bigint"


def day(number: int) -> datetime.date:
    return LAST + datetime.timedelta(days=number)


def sent(spark: SparkSession, *values: str | None) -> DataFrame:
    """Records of a topic with these values."""
    rows = [
        (b"k", None if value is None else value.encode(), "quotes", 0, offset) for offset, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, RECORD)


def signalled(history: History, *quotes: tuple[int, float, float]) -> list[Signal]:
    return list(history.take([(day(number), high, low) for number, high, low in quotes]))


@pytest.mark.java
def test_the_books_quotes_select_the_books_stocks(spark: SparkSession) -> None:
    quotes = robo_adviser.quotes(sent(spark, *BOOK.splitlines()))
    found = robo_adviser.signals(quotes.where("error IS NULL"), days=3).orderBy("code")
    assert [tuple(row) for row in found.collect()] == SELECTED


@pytest.mark.java
def test_a_quote_is_read_without_its_quotes_and_what_is_none_says_why(spark: SparkSession) -> None:
    good = "'平安银行','000001','2017-03-01 00:00:00.000',9.48,9.49,9.55,9.47,9.49"
    lacking = "a quote needs a code, a trading day, a high, and a low that is not above it"
    values = {
        good: None,
        good + ",1": "the line has not the 8 columns of the schema",
        "'a','1'": "the line has not the 8 columns of the schema",
        good.replace("9.55", "high"): "column 'high' is 'high', and the schema says DOUBLE",
        good.replace("2017-03-01", "2017-13-01"): (
            "column 'trade_date' is '2017-13-01 00:00:00.000', and the schema says TIMESTAMP"
        ),
        good.replace("9.55", "9.46"): lacking,
        good.replace("9.55", "NaN"): lacking,
        good.replace("9.55", ""): lacking,
        good.replace("'000001'", "' '"): lacking,
    }
    rows = robo_adviser.quotes(sent(spark, *values, None)).orderBy("offset").collect()
    assert [row["error"] for row in rows] == [*values.values(), "there is no value"]
    assert [rows[0][name] for name in ("code", "name", "trade_date", "high", "low")] == [
        "000001",
        "平安银行",
        LAST,
        9.55,
        9.47,
    ]


def test_a_stock_has_no_high_before_it_has_all_its_days() -> None:
    history = History(3)
    assert signalled(history, (1, 10, 9), (2, 11, 8)) == []
    assert signalled(history, (3, 12, 7)) == [Signal(day(3), "high", 12), Signal(day(3), "low", 7)]


def test_only_the_last_days_count() -> None:
    history = History(2)
    assert signalled(history, (1, 20, 1), (2, 10, 5), (3, 11, 6)) == [Signal(day(3), "high", 11)]


def test_reaching_the_highest_price_again_is_a_high() -> None:
    assert signalled(History(2), (1, 10, 5), (2, 10, 6)) == [Signal(day(2), "high", 10)]


def test_a_quote_of_the_same_day_signals_only_what_goes_further() -> None:
    history = History(2)
    assert signalled(history, (1, 10, 5), (2, 11, 6)) == [Signal(day(2), "high", 11)]
    assert signalled(history, (2, 11, 6), (2, 10, 6)) == []
    assert signalled(history, (2, 12, 4)) == [Signal(day(2), "high", 12), Signal(day(2), "low", 4)]


def test_an_earlier_day_counts_for_later_ones_and_has_no_signals() -> None:
    history = History(2)
    assert signalled(history, (5, 11, 6)) == []
    assert signalled(history, (4, 10, 5)) == [Signal(day(5), "high", 11)]
    assert signalled(history, (3, 99, 1)) == []
    assert signalled(history, (6, 11, 6)) == [Signal(day(6), "high", 11), Signal(day(6), "low", 6)]


PRICES = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3)), min_size=1, max_size=12)


@given(prices=PRICES, size=st.integers(1, 5))
def test_a_history_signals_what_a_look_at_all_days_finds(prices: list[tuple[int, int]], size: int) -> None:
    quotes = [(number, low + spread, low) for number, (low, spread) in enumerate(prices)]
    expected = []
    for number in range(size - 1, len(quotes)):
        seen = quotes[number - size + 1 : number + 1]
        if quotes[number][1] == max(high for _, high, _ in seen):
            expected.append(Signal(day(number), "high", quotes[number][1]))
        if quotes[number][2] == min(low for _, _, low in seen):
            expected.append(Signal(day(number), "low", quotes[number][2]))
    assert signalled(History(size), *quotes) == expected


@pytest.mark.java
def test_a_stream_of_days_signals_what_the_batch_signals_also_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    def rule(values: DataFrame) -> DataFrame:
        return robo_adviser.signal_stream(robo_adviser.quotes(values).where("error IS NULL"), days=3)

    def of(date: str) -> list[dict[str, Any]]:
        return [{"value": line} for line in BOOK.splitlines() if date in line]

    stream = MicroBatches(spark, tmp_path, "value string", rule)
    assert stream.run(of("2017-02-27"), of("2017-02-28")) == [[], []]
    (first,) = stream.run(of("2017-03-01"))
    assert sorted(tuple(row) for row in first) == SELECTED
    stream.forget(1)
    (again,) = stream.run()
    assert sorted(again) == sorted(first)
    (repeated,) = stream.run(of("2017-03-01"))
    assert repeated == []


@pytest.mark.java
def test_signals_and_dead_letters_are_records_for_their_topics(spark: SparkSession) -> None:
    quotes = robo_adviser.quotes(sent(spark, *BOOK.splitlines()[:3], "no quote"))
    signals = robo_adviser.records(robo_adviser.signals(quotes.where("error IS NULL"), days=3), "signals")
    letters = robo_adviser.letters(quotes.where("error IS NOT NULL"), "dead")
    signal, letter = signals.unionAll(letters).collect()
    assert (signal["topic"], bytes(signal["key"]), signal["headers"]) == ("signals", b"000001", None)
    assert json.loads(signal["value"]) == {
        "code": "000001",
        "name": "平安银行",
        "trade_date": "2017-03-01",
        "kind": "high",
        "price": 9.55,
        "days": 3,
    }
    assert (letter["topic"], bytes(letter["value"])) == ("dead", b"no quote")
    headers = {one["key"]: bytes(one["value"]) for one in letter["headers"]}
    assert headers.pop("__connect.errors.task.id").isdigit()
    assert headers == {
        "__connect.errors.connector.name": b"robo-adviser",
        "__connect.errors.topic": b"quotes",
        "__connect.errors.partition": b"0",
        "__connect.errors.offset": b"3",
        "__connect.errors.stage": b"VALUE_CONVERTER",
        "__connect.errors.exception.class.name": b"org.apache.kafka.connect.errors.DataException",
        "__connect.errors.exception.message": b"the line has not the 8 columns of the schema",
    }
