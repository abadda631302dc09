"""Claims about the jobs as programs: options, a broker, files, exit status and what they print."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from examples import abusive_callers, hot_words, robo_adviser
from pybroker.client import LATEST, Admin, Fetcher, NewTopic, Producer, Record, TopicPartition
from pybroker.client.settings import FetcherSettings, ProducerSettings
from pybroker_spark.pipelines import archive, ingest, job, streams, word_count
from pybroker_spark.pipelines import topics as job_topics
from tests.support import repository
from tests.support.processes import free_port
from tests.support.repository import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pybroker.testing import Broker

JOBS = [one.JOB for one in (abusive_callers, archive, hot_words, ingest, robo_adviser, word_count)]
NOON = 1_488_369_600_000
"""2017-03-01 12:00 UTC in milliseconds."""
SUBMIT_SECONDS = 240
CREATE_IT = "create it (pybroker topics --create --topic target), or give --create-topics"


class Topics:
    """A broker's topics, as the tests write and read them."""

    def __init__(self, broker: Broker) -> None:
        self.servers = broker.bootstrap_servers

    def create(self, *names: str) -> None:
        with Admin(self.servers) as admin:
            admin.create_topics([NewTopic(name, 1) for name in names])

    def names(self) -> set[str]:
        with Admin(self.servers) as admin:
            return set(admin.list_topics())

    def send(self, topic: str, *records: tuple[bytes, int]) -> None:
        with Producer(self.servers) as producer:
            for value, timestamp in records:
                producer.send(topic, value, timestamp_ms=timestamp)

    def read(self, topic: str) -> list[Record]:
        """All records of the topic's one partition."""
        partition = TopicPartition(topic, 0)
        with Admin(self.servers) as admin, Fetcher(self.servers) as fetcher:
            end = admin.list_offsets({partition: LATEST})[partition].offset
            fetcher.assign({partition: 0})
            records: list[Record] = []
            while end > 0 and fetcher.positions()[partition] < end:
                records += fetcher.poll(60)
        return records


@pytest.fixture
def topics(broker: Broker) -> Topics:
    return Topics(broker)


def ended(capsys: pytest.CaptureFixture[str], one: job.Job, *arguments: object) -> tuple[int, str]:
    """Exit status of a job, and the line that it printed."""
    capsys.readouterr()
    status = job.main(one, [str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    (line,) = (out if status == 0 else err).splitlines()
    return status, line.removeprefix(f"{one.name}: ")


@pytest.mark.java
def test_files_become_records_and_dead_letters_and_are_counted(
    spark: SparkSession, topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orders.csv").write_text("id,name\n1,pen\nx,ink\n3,paper\n")
    place = ("--bootstrap-server", topics.servers, "--source", tmp_path, "--format", "csv", "--header")
    schema = ("--schema", "id INT, name STRING", "--key", "id")
    where = ("--topic", "ingest-1", "--dead-letter-topic", "ingest-1-dead", "--create-topics")
    status, line = ended(capsys, ingest.JOB, *place, *schema, *where)
    assert (status, line) == (
        0,
        "3 rows read, 2 records to topic 'ingest-1', 1 dead letters to topic 'ingest-1-dead'",
    )
    records = {record.key: json.loads(record.value or b"") for record in topics.read("ingest-1")}
    assert records == {b"1": {"id": 1, "name": "pen"}, b"3": {"id": 3, "name": "paper"}}
    (letter,) = topics.read("ingest-1-dead")
    headers = dict(letter.headers)
    assert letter.value == b"x,ink"
    assert headers["__connect.errors.file.line"] == b"3"
    assert headers["__connect.errors.exception.message"] == b"column 'id' is 'x', and the schema says INT"


@pytest.mark.java
def test_a_stream_of_files_reads_each_once(
    spark: SparkSession, topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create("ingest-2")
    source = tmp_path / "files"
    source.mkdir()
    (source / "a.txt").write_text("one\ntwo\n")
    place = ("--bootstrap-server", topics.servers, "--source", source, "--format", "text", "--topic", "ingest-2")
    how = ("--checkpoint", tmp_path / "checkpoint", "--available-now")
    assert ended(capsys, ingest.JOB, *place, *how) == (0, "2 rows read, 2 records to topic 'ingest-2'")
    (source / "b.txt").write_text("three\n")
    assert ended(capsys, ingest.JOB, *place, *how) == (0, "1 rows read, 1 records to topic 'ingest-2'")
    assert [record.value for record in topics.read("ingest-2")] == [b"one", b"two", b"three"]


@pytest.mark.java
def test_topics_become_parquet_in_folders_and_dead_letters(
    spark: SparkSession, topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create("archive-1", "archive-2", "archive-dead")
    day = 86_400_000
    topics.send("archive-1", (b'{"id": 1}', NOON), (b'{"id": "x"}', NOON), (b'{"id": 2}', NOON + day))
    topics.send("archive-2", (b'{"id": 3}', NOON))
    where = ("--bootstrap-server", topics.servers, "--source", "archive-1,archive-2", "--path", tmp_path / "archive")
    what = ("--values", "json", "--schema", "id INT", "--dead-letter-topic", "archive-dead")
    how = ("--checkpoint", tmp_path / "checkpoint", "--available-now")
    status, line = ended(capsys, archive.JOB, *where, *what, *how)
    assert (status, line) == (
        0,
        f"3 records to '{tmp_path / 'archive'}', 1 dead letters to topic 'archive-dead'",
    )
    found = {
        str(file.parent.relative_to(tmp_path / "archive")): pq.ParquetFile(file).read().to_pylist()[0]["value"]
        for file in (tmp_path / "archive").rglob("*.parquet")
    }
    assert found == {
        "topic=archive-1/date=2017-03-01": {"id": 1},
        "topic=archive-1/date=2017-03-02": {"id": 2},
        "topic=archive-2/date=2017-03-01": {"id": 3},
    }
    (letter,) = topics.read("archive-dead")
    assert (letter.value, dict(letter.headers)["__connect.errors.offset"]) == (b'{"id": "x"}', b"1")


@pytest.mark.java
@pytest.mark.parametrize("example", repository.files_under("spark/examples", suffix=".py"))
def test_an_example_is_run_as_a_file_of_the_clone(example: str) -> None:
    ran = subprocess.run([sys.executable, example, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "--bootstrap-server" in ran.stdout


@pytest.mark.java
def test_abusive_callers_go_to_their_topic_once_for_each_restart_that_has_news(
    spark: SparkSession, topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create("access-log", "abusive-callers")
    topics.send("access-log", *((b"10.0.0.1", NOON + one) for one in range(61)), (b"10.0.0.2", NOON), (b" ", NOON))
    options = ("--bootstrap-server", topics.servers, "--checkpoint", tmp_path / "checkpoint", "--available-now")
    status, line = ended(capsys, abusive_callers.JOB, *options)
    expected = "62 requests read, 0 late groups of them left out, 1 records without an address or a time"
    assert (status, line) == (0, expected)
    status, line = ended(capsys, abusive_callers.JOB, *options)
    assert (status, line.partition(",")[0]) == (0, "0 requests read")
    (record,) = topics.read("abusive-callers")
    assert record.key == b"10.0.0.1"
    assert json.loads(record.value or b"")["requests"] == 61


@pytest.mark.java
def test_signals_of_the_robo_adviser_go_to_their_topic(
    spark: SparkSession, topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create("stock-quotes", "stock-signals", "stock-dead")
    days = [f"'平安银行','000001','2017-03-0{day} 00:00:00.000',1,1,1{day},1,1".encode() for day in (1, 2)]
    topics.send("stock-quotes", *((value, NOON) for value in (*days, b"no quote")))
    options = ("--bootstrap-server", topics.servers, "--checkpoint", tmp_path / "checkpoint", "--available-now")
    what = ("--days", "2", "--dead-letter-topic", "stock-dead")
    assert ended(capsys, robo_adviser.JOB, *options, *what) == (0, "2 quotes read, 1 records that are none")
    signals = [json.loads(record.value or b"") for record in topics.read("stock-signals")]
    assert {(one["kind"], one["trade_date"], one["price"]) for one in signals} == {
        ("high", "2017-03-02", 12.0),
        ("low", "2017-03-02", 1.0),
    }
    assert [record.value for record in topics.read("stock-dead")] == [b"no quote"]


@pytest.mark.java
@pytest.mark.process
@pytest.mark.timeout(SUBMIT_SECONDS + 30)
def test_a_job_runs_by_spark_submit(topics: Topics, tmp_path: Path) -> None:
    topics.create("lines", "word-counts")
    topics.send("lines", (b"hello world hello kafka hello hello spark hadoop kafka spark", NOON))
    programs = Path(sys.executable).parent
    spark = ["--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=1"]
    spark += ["--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"]
    options = ["--bootstrap-server", topics.servers, "--source", "lines", "--available-now"]
    options += ["--checkpoint", str(tmp_path / "checkpoint")]
    command = [str(programs / "spark-submit"), *spark, str(word_count.__file__), *options]
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SUBMIT_SECONDS, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout == "word-count: 1 records read, counts written to topic 'word-counts'\n"
    counts = {record.key: record.value for record in topics.read("word-counts")}
    assert counts == {b"hello": b"4", b"world": b"1", b"kafka": b"2", b"spark": b"2", b"hadoop": b"1"}


def test_a_topic_that_is_not_there_is_reported_before_spark_starts(
    topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create("there")
    options = ("--bootstrap-server", topics.servers, "--checkpoint", tmp_path)
    status, line = ended(capsys, hot_words.JOB, *options, "--source", "nowhere")
    assert status == 2
    assert line.startswith(f"--source: topic 'nowhere' is not there on {topics.servers}: there are ")
    status, line = ended(capsys, hot_words.JOB, *options, "--source", "there", "--topic", "target")
    assert (status, line) == (
        2,
        f"--topic: topic 'target' is not there on {topics.servers}: {CREATE_IT}",
    )
    assert "target" not in topics.names()


def test_a_checkpoint_that_cannot_be_is_refused_before_spark_starts(
    topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    for place in (file, file / "below"):
        options = ("--bootstrap-server", topics.servers, "--source", "any", "--checkpoint", place)
        status, line = ended(capsys, word_count.JOB, *options)
        assert status == 2
        assert line == f"--checkpoint: '{place}' cannot be a directory, because '{file}' is a file: give another"


def test_a_broker_that_does_not_answer_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = f"127.0.0.1:{free_port()}"
    limits = ("default.api.timeout.ms=500", "request.timeout.ms=500")
    options = ("--bootstrap-server", server, *(word for limit in limits for word in ("--command-property", limit)))
    status, line = ended(capsys, word_count.JOB, *options, "--source", "any", "--checkpoint", tmp_path)
    assert status == 1
    assert server in line


@pytest.mark.java
def test_files_that_are_not_there_or_cannot_be_read_are_named(
    spark: SparkSession, topics: Topics, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create("ingest-3")
    where = ("--bootstrap-server", topics.servers, "--topic", "ingest-3", "--format")
    status, line = ended(capsys, ingest.JOB, *where, "text", "--source", tmp_path / "none")
    assert (status, line) == (
        2,
        f"--source: nothing is at '{tmp_path / 'none'}': give a file, a directory, or a pattern in quotes",
    )
    (tmp_path / "a.json").write_text('{"id": "x"}\n')
    status, line = ended(capsys, ingest.JOB, *where, "json", "--source", tmp_path, "--schema", "id INT")
    assert status == 1
    assert line.endswith(
        "a.json, line 1: column 'id' is 'x', and the schema says INT; give --dead-letter-topic to skip such rows"
    )
    status, line = ended(capsys, ingest.JOB, *where, "json", "--source", tmp_path, "--schema", "id INTT")
    assert (status, line) == (
        2,
        "--schema: 'id INTT' is no schema: give names and types, as 'id INT, name STRING'",
    )
    status, line = ended(capsys, ingest.JOB, *where, "json", "--source", tmp_path, "--key", "name")
    assert (status, line) == (2, "--key: there is no column 'name'; there are id")
    assert topics.read("ingest-3") == []


@pytest.mark.parametrize(
    ("one", "options", "expected"),
    [
        (ingest.JOB, ["--format", "xml"], "argument --format: invalid choice: 'xml' (choose from"),
        (hot_words.JOB, ["--window", "5 moons"], "'5 moons' is no length of time: give a number and one of"),
        (hot_words.JOB, ["--top", "0"], "'0' is no count: give a whole number from 1"),
        (word_count.JOB, ["--separator", "("], "'(' is no regular expression"),
        (archive.JOB, ["--partition-by", "year"], "'year' is no column for folders: there are topic, partition"),
        (ingest.JOB, ["--command-property", "x"], "'x' is no setting: give it as key=value"),
        (ingest.JOB, ["--command-config", "/none"], "cannot read /none: No such file or directory"),
    ],
)
def test_an_option_that_cannot_work_is_refused(
    one: job.Job, options: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        job.main(one, options)
    assert raised.value.code == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("one", "options", "expected"),
    [
        (
            ingest.JOB,
            "--source a --topic t --format text --available-now",
            "--available-now is for streams: give --checkpoint DIR, or leave it out to read the files once",
        ),
        (ingest.JOB, "--source a --topic t --format text --header", "--header is for CSV, and --format is text"),
        (
            hot_words.JOB,
            "--checkpoint c --window 5minutes --slide 10minutes",
            "--slide: '10 minutes' is longer than the window of 5 minutes, and what lies between windows is lost",
        ),
        (
            archive.JOB,
            "--source a --path p --checkpoint c --schema x",
            "--schema is for --values json, and --values is binary",
        ),
        (
            word_count.JOB,
            "--source a --checkpoint c --starting-offsets foo",
            (
                "--starting-offsets: startingOffsets=foo: must be JSON like"
                ' {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}} (-2 earliest, -1 latest)'
            ),
        ),
        (
            word_count.JOB,
            "--source a --checkpoint c --command-property linger.ms=soon",
            (
                "--bootstrap-server, --command-config or --command-property: kafka.linger.ms=soon: "
                "must be a number from 0.0 to 9223372036854775807"
            ),
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    one: job.Job, options: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(capsys, one, "--bootstrap-server", "127.0.0.1:1", *options.split()) == (2, expected)


def test_a_micro_batch_that_is_reported_twice_counts_once() -> None:
    def progress(batch: int, rows: int) -> Any:
        return SimpleNamespace(
            batchId=batch,
            timestamp=f"2017-03-01T12:00:0{batch}.000Z",
            sources=[SimpleNamespace(numInputRows=rows)],
            stateOperators=[],
            observedMetrics={},
        )

    ended = streams.Ended()
    for one in (progress(0, 3), progress(1, 4), progress(0, 3), progress(1, 4), progress(2, 0)):
        ended.add(one)
    assert ended.rows_read == 7


@pytest.mark.parametrize("one", JOBS, ids=lambda one: one.name)
def test_every_job_prints_its_options(one: job.Job, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        job.main(one, ["--help"])
    assert raised.value.code == 0
    assert "--bootstrap-server" in capsys.readouterr().out


def test_each_side_of_a_job_gets_its_own_settings_and_those_of_neither() -> None:
    pairs = [("linger.ms", "5"), ("isolation.level", "read_committed"), ("client.id", "me"), ("linger", "6")]
    arguments = argparse.Namespace(bootstrap_server="h:1", command_property=pairs)
    read = job_topics.client_options(arguments, FetcherSettings, ProducerSettings)
    written = job_topics.client_options(arguments, ProducerSettings, FetcherSettings)
    both = {"kafka.bootstrap.servers": "h:1", "kafka.client.id": "me", "kafka.linger": "6"}
    assert read == {**both, "kafka.isolation.level": "read_committed"}
    assert written == {**both, "kafka.linger.ms": "5"}
