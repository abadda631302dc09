"""Claims about `pybroker_spark.source.options`: names, defaults and refusals of Spark's Kafka connector."""

from __future__ import annotations

import pickle

import pytest

from pybroker.client import EARLIEST, LATEST, TopicPartition
from pybroker.client.settings import FetcherSettings
from pybroker_spark.source.errors import OptionError
from pybroker_spark.source.offsets import AtOffsets, AtTime, AtTimes, Everywhere
from pybroker_spark.source.options import parse_read, parse_write, warn_of_unused

LEAST = {"kafka.bootstrap.servers": "h:1", "subscribe": "orders"}
P0 = TopicPartition("orders", 0)


def test_two_options_are_enough_and_the_others_have_the_connectors_defaults() -> None:
    options = parse_read(LEAST)
    assert options.topics.names == ("orders",)
    assert (options.starting, options.ending) == (None, None)
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert (options.min_partitions, options.max_offsets_per_trigger) == (None, None)
    assert (options.fetch_attempts, options.fetch_retry_s) == (3, 1.0)
    assert (options.poll_timeout_s, options.max_trigger_delay_s) == (120.0, 900.0)
    assert not options.read_committed


def test_names_are_compared_without_regard_to_case() -> None:
    options = parse_read({"KAFKA.Bootstrap.Servers": "h:1", "SUBSCRIBE": " a , b,a ,", "FailOnDataLoss": "FALSE"})
    assert options.bootstrap_servers == "h:1"
    assert options.topics.names == ("a", "b")
    assert not options.fail_on_data_loss


def test_kafka_options_go_to_the_client_without_their_prefix() -> None:
    options = parse_read({**LEAST, "kafka.isolation.level": "read_committed", "kafka.fetch.min.bytes": "7"})
    assert options.properties == {"isolation.level": "read_committed", "fetch.min.bytes": "7"}
    assert options.read_committed


def test_options_travel_to_the_workers() -> None:
    options = parse_read({**LEAST, "startingOffsets": '{"orders":{"0":5}}'})
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    ("given", "starting"),
    [
        ({"startingOffsets": "Earliest"}, Everywhere(EARLIEST)),
        ({"startingOffsets": "latest"}, Everywhere(LATEST)),
        ({"startingOffsets": '{"orders":{"0":5}}'}, AtOffsets({P0: 5})),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":1000}}', "startingOffsets": "latest"}, AtTimes({P0: 1000})),
        ({"startingTimestamp": "7", "startingOffsetsByTimestamp": '{"orders":{"0":1000}}'}, AtTime(7)),
    ],
)
def test_one_time_goes_before_times_and_times_before_offsets(given: dict[str, str], starting: object) -> None:
    assert parse_read({**LEAST, **given}).starting == starting


@pytest.mark.parametrize(
    ("text", "seconds"), [("15m", 900.0), ("30s", 30.0), ("500ms", 0.5), ("250", 0.25), ("1h", 3600.0)]
)
def test_a_delay_is_read_as_spark_reads_times(text: str, seconds: float) -> None:
    assert parse_read({**LEAST, "maxTriggerDelay": text}).max_trigger_delay_s == seconds


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss=maybe: must be true or false"),
        ({"minPartitions": "0"}, "minPartitions=0: must be a whole number of at least 1"),
        ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger=many: must be a whole number of at least 1"),
        ({"fetchOffset.retryIntervalMs": "-1"}, "fetchOffset.retryIntervalMs=-1: must be a whole number of at least 0"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay=soon: must be a time like 15m, 30s or 500ms"),
        ({"startingTimestamp": "noon"}, "startingTimestamp=noon: must be milliseconds since 1970"),
        ({"startingOffsetsByTimestampStrategy": "first"}, "startingOffsetsByTimestampStrategy=first: must be error or"),
        ({"startingOffset": "latest"}, "startingoffset: there is no such option; did you mean startingOffsets?"),
        ({"header": "true"}, "header: there is no such option; did you mean includeHeaders?"),
        ({"a.delegation.token": "true"}, "a.delegation.token: no option makes a token; pybroker_spark.delegated gives"),
        ({"kafka.auto.offset.reset": "latest"}, "kafka.auto.offset.reset=latest: not supported; set startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit=true: not supported"),
        ({"kafka.interceptor.classes": "a.B"}, "kafka.interceptor.classes=a.B: not supported"),
        ({"kafka.key.deserializer": "a.B"}, "kafka.key.deserializer=a.B: not supported; keys come as binary"),
        ({"kafka.value.deserializer": "a.B"}, "kafka.value.deserializer=a.B: not supported; values come as binary"),
        ({"kafka.security.protocol": "TLS"}, "kafka.security.protocol=TLS: must be one of PLAINTEXT, SSL"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is not given: the consumer needs"),
        ({"subscribe": " , "}, "subscribe=,: must name at least one topic"),
        (
            {"assign": '{"orders":[0]}'},
            "exactly one of assign, subscribe, subscribePattern says what is read, and assign",
        ),
    ],
)
def test_a_refusal_names_the_option_the_value_and_what_would_be_right(given: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError) as refusal:
        parse_read({**LEAST, **given})
    assert str(refusal.value).startswith(reason)


def test_without_topics_the_three_ways_to_name_them_are_listed() -> None:
    with pytest.raises(OptionError, match=r"one of assign, subscribe, subscribePattern says what is read, and none is"):
        parse_read({"kafka.bootstrap.servers": "h:1"})


def test_a_pattern_must_be_an_expression() -> None:
    with pytest.raises(OptionError, match=r"^subscribePattern=\(: must be a regular expression"):
        parse_read({"kafka.bootstrap.servers": "h:1", "subscribePattern": "("})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"startingOffsets": "latest"},
            r"^startingOffsets=latest: a batch cannot have that; must be earliest or an off",
        ),
        (
            {"endingOffsets": "earliest"},
            r"^endingOffsets=earliest: a batch cannot have that; must be latest or an offset",
        ),
        (
            {"startingOffsets": '{"orders":{"0":-1}}'},
            r"^startingOffsets: orders-0 is -1 \(latest\); in a batch it must",
        ),
        (
            {"endingOffsets": '{"orders":{"0":-2}}'},
            r"^endingOffsets: orders-0 is -2 \(earliest\); in a batch it must be",
        ),
        (
            {"startingOffsets": '{"orders":{"0":5}}', "endingOffsets": '{"orders":{"1":5}}'},
            r"^startingOffsets names orders-0, endingOffsets orders-1: must name the same partitions",
        ),
        (
            {"startingOffsets": '{"orders":{"0":5}}', "endingOffsets": '{"orders":{"0":4}}'},
            r"^orders-0: startingOffsets is 5, endingOffsets 4: must not be before it",
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"orders":{"0":5}}',
                "endingOffsetsByTimestamp": '{"orders":{"0":4}}',
            },
            r"^orders-0: startingOffsetsByTimestamp is 5, endingOffsetsByTimestamp 4: must not be before it",
        ),
    ],
)
def test_a_batch_refuses_ends_that_it_cannot_have(given: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        parse_read({**LEAST, **given}).check_batch()


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    text = "5" if name == "endingTimestamp" else '{"orders":{"0":5}}'
    with pytest.raises(OptionError, match=f"^{name}: a stream has no end"):
        parse_read({**LEAST, name: text}).check_stream()


def test_the_least_of_a_micro_batch_is_not_above_the_most() -> None:
    options = parse_read({**LEAST, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"})
    with pytest.raises(OptionError, match=r"^minOffsetsPerTrigger=9 is above maxOffsetsPerTrigger=8"):
        options.check_stream()


@pytest.mark.parametrize("name", ["checkpointLocation", "path", "queryName", "asyncProgressTrackingEnabled"])
def test_options_that_spark_reads_itself_are_left_to_it(name: str) -> None:
    assert parse_read({**LEAST, name: "x"}).topics.names == ("orders",)
    assert parse_write({"kafka.bootstrap.servers": "h:1", name: "x"}).topic is None


def test_a_job_may_give_both_sides_the_same_options() -> None:
    both = {"kafka.bootstrap.servers": "h:1", "topic": "orders", "subscribe": "orders", "includeHeaders": "true"}
    assert (parse_read(both).topics.names, parse_write(both).topic) == (("orders",), "orders")


def test_a_write_has_a_topic_or_leaves_it_to_the_rows() -> None:
    servers = {"kafka.bootstrap.servers": "h:1"}
    assert parse_write({**servers, "Topic": " orders "}).topic == "orders"
    assert parse_write(servers).topic is None
    with pytest.raises(OptionError, match=r"^target: .* option; there are exactly.once, topic, kafka"):
        parse_write({**servers, "target": "orders"})
    with pytest.raises(OptionError, match=r"^topics: there is no such option; did you mean topic"):
        parse_write({**servers, "Topics": "orders"})
    with pytest.raises(OptionError, match=r"^topic=: must name a topic"):
        parse_write({**servers, "topic": " "})


@pytest.mark.parametrize("name", ["key.serializer", "value.serializer"])
def test_a_write_takes_no_serializer(name: str) -> None:
    with pytest.raises(OptionError, match=f"^kafka.{name}=a.B: not supported"):
        parse_write({"kafka.bootstrap.servers": "h:1", f"kafka.{name}": "a.B"})


def test_a_write_needs_servers() -> None:
    with pytest.raises(OptionError, match=r"^kafka.bootstrap.servers is not given: the producer needs"):
        parse_write({"topic": "orders"})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("isolation.level", "read_comitted", "must be one of read_uncommitted, read_committed"),
        ("isolation.level", "READ_COMMITTED", "must be one of read_uncommitted, read_committed"),
        ("fetch.max.bytes", "abc", "must be a whole number"),
        ("bootstrap.servers", "nowhere", "expected host:port"),
    ],
)
def test_a_setting_that_the_consumer_refuses_is_refused_before_a_task_runs(name: str, value: str, reason: str) -> None:
    with pytest.raises(OptionError, match=f"^kafka.{name}={value}: {reason}"):
        parse_read({**LEAST, f"kafka.{name}": value})


@pytest.mark.parametrize(
    ("name", "value", "reason"), [("acks", "9", "must be one of 0, 1, all, -1"), ("linger.ms", "x", "must be")]
)
def test_a_setting_that_the_producer_refuses_is_refused_before_a_task_runs(name: str, value: str, reason: str) -> None:
    with pytest.raises(OptionError, match=f"^kafka.{name}={value}: {reason}"):
        parse_write({"kafka.bootstrap.servers": "h:1", f"kafka.{name}": value})


def test_a_setting_that_the_client_does_not_have_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_unused(FetcherSettings, {"group.id": "g", "fetch.min.byts": "7", "fetch.min.bytes": "8"})
    assert [record.getMessage() for record in caplog.records] == [
        "option kafka.fetch.min.byts=7 has no effect on this client"
    ]
