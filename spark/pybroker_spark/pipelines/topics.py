"""Topics as a job's sources and targets: options, a check that they exist, reading, writing.

Owns all uses of the data source `pybroker` by the jobs. Its options are those of Spark's Kafka connector. Must not
know the meaning of records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.client import Admin, BrokerError, NewTopic
from pybroker.client.settings import ConnectionSettings, FetcherSettings, ProducerSettings
from pybroker_spark import updates
from pybroker_spark.pipelines import kinds
from pybroker_spark.pipelines.errors import UsageError
from pybroker_spark.source import datasource
from pybroker_spark.source.errors import OptionError
from pybroker_spark.source.options import parse_read, parse_write

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

FORMAT = "pybroker"


def add_source(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Declare the source topics of a job."""
    parser.add_argument(
        "--source",
        default=default,
        required=default is None,
        metavar="TOPICS",
        help="topics to read, separated by commas" + (f" (default: {default})" if default else ""),
    )
    parser.add_argument(
        "--starting-offsets",
        default="earliest",
        metavar="WHERE",
        help="earliest, latest or JSON by partition; a checkpoint that exists goes on where it is (default: earliest)",
    )
    parser.add_argument(
        "--max-offsets-per-trigger", type=kinds.count, metavar="N", help="at most so many records in a micro-batch"
    )
    parser.set_defaults(source_is_topics=True)


def add_target(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Declare the target topic of a job."""
    parser.add_argument(
        "--topic",
        default=default,
        required=default is None,
        metavar="TOPIC",
        help="topic to write" + (f" (default: {default})" if default else ""),
    )
    add_creation(parser)


def add_creation(parser: argparse.ArgumentParser) -> None:
    """Declare the creation of missing target topics."""
    parser.add_argument("--create-topics", action="store_true", help="create the topics to write that are not there")


def add_dead_letters(parser: argparse.ArgumentParser, *, without: str = "the first ends the job") -> None:
    """Declare the topic for records that cannot be read or sent, and the behaviour `without` such a topic."""
    parser.add_argument(
        "--dead-letter-topic",
        metavar="TOPIC",
        help=f"topic for what cannot be read or sent, with headers that say why; without one {without}",
    )


def check(arguments: argparse.Namespace) -> None:
    """Check, before Spark starts, that the topics of the options exist; creates targets if the options require it.

    Raises UsageError with the option and the topic, and ClientError where no broker responds.
    """
    _check_options(arguments)
    sources = arguments.source.split(",") if getattr(arguments, "source_is_topics", False) else []
    targets = [
        (option, topic)
        for option, topic in (
            ("--topic", getattr(arguments, "topic", None)),
            ("--dead-letter-topic", getattr(arguments, "dead_letter_topic", None)),
        )
        if topic
    ]
    with Admin(arguments.bootstrap_server, dict(arguments.command_property)) as admin:
        there = set(admin.list_topics(internal=True))
        for topic in sources:
            if topic not in there:
                raise UsageError(f"--source: {_missing(topic, arguments)}: {_others(there)}")
        for option, topic in targets:
            if topic in there:
                continue
            if not getattr(arguments, "create_topics", False):
                how = f"create it (pybroker topics --create --topic {topic}), or give --create-topics"
                raise UsageError(f"{option}: {_missing(topic, arguments)}: {how}")
            try:
                admin.create_topics([NewTopic(topic)])
            except BrokerError as error:
                raise UsageError(f"{option}: topic '{topic}' cannot be created: {error}") from None


def _missing(topic: str, arguments: argparse.Namespace) -> str:
    return f"topic '{topic}' is not there on {arguments.bootstrap_server}"


def _others(there: set[str]) -> str:
    shown = sorted(name for name in there if not name.startswith("__"))[:10]
    return f"there are {', '.join(shown)}" if shown else "there are no topics yet"


def client_options(
    arguments: argparse.Namespace, mine: type[ConnectionSettings], others: type[ConnectionSettings]
) -> dict[str, str]:
    """Return the connection options: addresses, and client settings with the prefix `kafka.`.

    A job's settings apply to its reading and its writing client: each gets its own, and those unknown to both.
    """
    given = dict(arguments.command_property)
    kept = given.keys() - (set(mine.without_effect(given)) - set(others.without_effect(given)))
    settings = {f"kafka.{key}": given[key] for key in given if key in kept}
    return {"kafka.bootstrap.servers": arguments.bootstrap_server, **settings}


def _reading(arguments: argparse.Namespace) -> dict[str, str]:
    return client_options(arguments, FetcherSettings, ProducerSettings)


def _writing(arguments: argparse.Namespace) -> dict[str, str]:
    return client_options(arguments, ProducerSettings, FetcherSettings)


def _check_options(arguments: argparse.Namespace) -> None:
    """Reject options that the data source would reject. Raises UsageError."""
    option = "--bootstrap-server, --command-config or --command-property"
    try:
        parse_write(_writing(arguments))
        if getattr(arguments, "source_is_topics", False):
            read = {**_reading(arguments), "subscribePattern": "."}
            parse_read(read)
            option = "--starting-offsets"
            parse_read({**read, "startingOffsets": arguments.starting_offsets})
    except OptionError as error:
        raise UsageError(f"{option}: {error}") from None


def read_stream(spark: SparkSession, arguments: argparse.Namespace, *columns: str) -> DataFrame:
    """Return the records of `--source` as a stream of these columns of the connector; others are not built."""
    register(spark)
    options = {
        **_reading(arguments),
        "subscribe": arguments.source,
        "startingOffsets": arguments.starting_offsets,
        "includeHeaders": str("headers" in columns).lower(),
        "columns": ",".join(columns),
    }
    if arguments.max_offsets_per_trigger is not None:
        options["maxOffsetsPerTrigger"] = str(arguments.max_offsets_per_trigger)
    return spark.readStream.format(FORMAT).options(**options).load()


def write(records: DataFrame, arguments: argparse.Namespace, topic: str | None = None) -> None:
    """Write records of a batch: to `topic`, or each to that of its column `topic`."""
    register(records.sparkSession)
    options = {**_writing(arguments), **({} if topic is None else {"topic": topic})}
    records.write.format(FORMAT).options(**options).mode("append").save()


def write_stream(records: DataFrame, arguments: argparse.Namespace, topic: str | None = None) -> DataStreamWriter:
    """Return a writer of a stream of final records, exactly once: to `topic`, or each to that of its column `topic`."""
    register(records.sparkSession)
    options = {**_writing(arguments), **({} if topic is None else {"topic": topic})}
    return records.writeStream.format(FORMAT).options(**options).outputMode("append")


def write_updates(records: DataFrame, arguments: argparse.Namespace, topic: str) -> DataStreamWriter:
    """Return a writer of a stream of records that replace older ones of their key (`pybroker_spark.updates`)."""
    return updates.write_updates(records, {**_writing(arguments), "topic": topic})


def register(spark: SparkSession) -> None:
    """Register the format in a session."""
    datasource.register(spark)
