"""Applications on Spark: the start of a query, what a restart continues with, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.streams import INT64, STRING, StreamsBuilder
from pybroker.streams.errors import StreamsError, TopologyError
from pybroker.streams.runtime.collector import ProducedRecord
from pybroker.streams.topology.topology import Topology
from pybroker.testing import Broker
from tests.support.spark_streams import Application, create_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java

CONFIG = {"default.key.serde": STRING, "default.value.serde": STRING}


def word_count(prefix: str) -> Topology:
    """Count words of two partitions, through a repartition topic."""
    builder = StreamsBuilder()
    lines = builder.stream(f"{prefix}-lines", key_serde=STRING, value_serde=STRING)
    words = lines.flat_map_values(lambda line: line.lower().split())
    counts = words.group_by(lambda _, word: word, key_serde=STRING, value_serde=STRING).count(store="word-count")
    counts.to_stream().to(f"{prefix}-counts", key_serde=STRING, value_serde=INT64)
    return builder.build()


def line(prefix: str, text: str) -> ProducedRecord:
    return ProducedRecord(f"{prefix}-lines", None, text.encode(), 1)


def counts(application: Application, prefix: str) -> list[tuple[str, int]]:
    """Return the sorted records of the counts."""
    found = application.records([f"{prefix}-counts"])[f"{prefix}-counts"]
    return sorted(((record.key or b"").decode(), int.from_bytes(record.value or b"")) for record in found)


def made(spark: SparkSession, broker: Broker, topology: Topology, directory: Path, **config: Any) -> Application:
    settings = {**CONFIG, "application.id": directory.name, **config}
    return Application(spark, broker.bootstrap_servers, topology, settings, directory)


def test_word_count_continues_from_its_checkpoint(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    create_topics(broker.bootstrap_servers, ["wc-lines", "wc-counts"], partitions=2)
    application = made(spark, broker, word_count("wc"), tmp_path, **{"application.id": "wc"})
    query = application.round([line("wc", "Hello broker hello"), line("wc", "broker HELLO")])
    # One record for each key and batch: the cache combines the updates of a key.
    assert counts(application, "wc") == [("broker", 2), ("hello", 3)]
    (operator,) = {operator.operatorName for done in query.recentProgress for operator in done.stateOperators}
    assert operator == "transformWithStateInPySparkExec"
    application.round([line("wc", "hello again")])
    after = [("again", 1), ("broker", 2), ("hello", 3), ("hello", 4)]
    assert counts(application, "wc") == after
    # As if the driver had died after the last batch was written, and before Spark's checkpoint contained the batch.
    commits = Path(application.checkpoint) / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    query = application.round([])
    assert [done.batchId for done in query.recentProgress if done.numInputRows] == [last]
    assert counts(application, "wc") == after
    with Admin(broker.bootstrap_servers) as admin:
        created = {name for name in admin.list_topics() if name.startswith("wc-")}
        (repartition,) = admin.describe_topics(["wc-word-count-repartition"])
    # Kafka's name, the number of partitions of the source, and no changelog topic.
    assert created == {"wc-lines", "wc-counts", "wc-word-count-repartition"}
    assert len(repartition.partitions) == 2


def test_stateless_topology_has_no_state_operator(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    create_topics(broker.bootstrap_servers, ["sl-in", "sl-out"])
    builder = StreamsBuilder()
    builder.stream("sl-in").map_values(lambda value: value.upper()).to("sl-out")
    application = made(spark, broker, builder.build(), tmp_path)
    record = ProducedRecord("sl-in", b"k", b"tea", 1_700_000_000_123, (("a", b"1"), ("b", None)))
    query = application.round([record])
    assert [list(done.stateOperators) for done in query.recentProgress if done.numInputRows] == [[]]
    (written,) = application.records(["sl-out"])["sl-out"]
    assert written == ProducedRecord("sl-out", b"k", b"TEA", record.timestamp, record.headers)


def test_checkpoint_of_another_topology_is_refused(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    create_topics(broker.bootstrap_servers, ["cp-in", "cp-out"])
    builder = StreamsBuilder()
    builder.stream("cp-in").to("cp-out")
    application = made(spark, broker, builder.build(), tmp_path)
    application.start().stop()
    builder = StreamsBuilder()
    builder.stream("cp-in").peek(print).to("cp-out")
    other = made(spark, broker, builder.build(), tmp_path)
    with pytest.raises(StreamsError, match=r"is of another topology: line 4 of its description is '--> KSTREAM-SINK-"):
        other.start()
    renamed = made(spark, broker, application.topology, tmp_path, **{"application.id": "renamed"})
    with pytest.raises(StreamsError, match=f"is of application '{tmp_path.name}': expected 'renamed'"):
        renamed.start()
    (tmp_path / "checkpoint" / "pybroker-topology.json").unlink()
    with pytest.raises(StreamsError, match=r"is of another query: it has no pybroker-topology\.json"):
        application.start()


def test_wrong_topics_and_options_are_refused(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    application = made(spark, broker, word_count("no"), tmp_path, **{"application.id": "no"})
    with pytest.raises(StreamsError, match=r"topic 'no-counts' does not exist on .*: create it first"):
        application.start()
    create_topics(broker.bootstrap_servers, ["no-lines", "no-counts"], partitions=2)
    with pytest.raises(StreamsError, match=r"invalid trigger \{'availableNow': True\}: expected processingTime"):
        application.start(trigger={"availableNow": True})
    with pytest.raises(StreamsError, match="unknown options columns: expected some of maxOffsetsPerTrigger"):
        application.start(options={"columns": "value"})
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("no-word-count-repartition", 3, 1)])
    with pytest.raises(StreamsError, match="no-word-count-repartition has 3 partitions: expected 2"):
        application.start()


def test_topics_of_a_join_need_equal_numbers_of_partitions(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    create_topics(broker.bootstrap_servers, ["jo-one", "jo-out"], partitions=1)
    create_topics(broker.bootstrap_servers, ["jo-two"], partitions=2)
    builder = StreamsBuilder()
    builder.stream("jo-one").join(builder.table("jo-two"), lambda one, two: one + two).to("jo-out")
    with pytest.raises(TopologyError, match=r"same number of partitions: \[\{jo-one=1, jo-two=2\}\]"):
        made(spark, broker, builder.build(), tmp_path).start()
