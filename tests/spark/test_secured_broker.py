"""Claims about the format `pybroker` and the jobs over SASL_SSL: they work, and no plan, log or error has a secret."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.testing import Broker
from pybroker.testing.certificates import Authority
from pybroker_spark.pipelines import ingest, job
from pybroker_spark.spark_errors import SPARK_ERRORS, causes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java

TOPIC, COPY, LINES = "secured", "secured-copy", "secured-lines"
# None has a word by which Spark recognizes a secret, so that what hides it is not luck.
GOOD, BAD = "alices-Zq8-phrase", "another-Zq9-phrase"
ROWS = [("0",), ("1",), ("2",)]


class Secured:
    """A broker that asks for a password over TLS, and a client that also has a certificate and its key."""

    def __init__(self, broker: Broker) -> None:
        own = Authority().issue("alice")
        self.servers = broker.bootstrap_servers
        self.properties = broker.client_properties("alice") | {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": own.certificate,
            "ssl.keystore.key": own.key,
        }
        self.secrets = (GOOD, BAD, own.key.splitlines()[1])

    def options(self, **more: str) -> dict[str, str]:
        """What the format is given."""
        given = {f"kafka.{key}": value for key, value in self.properties.items()}
        return {"kafka.bootstrap.servers": self.servers, **given, **more}

    def hides(self, *texts: object) -> bool:
        """Whether none of the texts has one of the secrets."""
        return not any(secret in str(text) for secret in self.secrets for text in texts)


@pytest.fixture(scope="module")
def secured() -> Iterator[Secured]:
    with Broker(security="SASL_SSL", users={"alice": GOOD}) as broker:
        with Admin(broker.bootstrap_servers, broker.client_properties("alice")) as admin:
            admin.create_topics([NewTopic(name, 1) for name in (TOPIC, COPY, LINES)])
            for name in (TOPIC, COPY, LINES):
                admin.wait_for_leaders(name)
        yield Secured(broker)


@pytest.fixture
def logged(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The file to which Spark logs all that it does, until the test ends."""
    logging = spark.sparkContext._jvm.org.apache.logging.log4j  # type: ignore[union-attr]  # a view of Java's packages
    context = logging.core.LoggerContext.getContext(False)
    file = tmp_path / "spark.log"
    builder = logging.core.appender.FileAppender.newBuilder()
    appender = builder.setName("secured").withFileName(str(file)).build()
    appender.start()
    root = context.getConfiguration().getRootLogger()
    level = root.getLevel()
    root.addAppender(appender, logging.Level.INFO, None)
    root.setLevel(logging.Level.INFO)
    context.updateLoggers()
    yield file
    root.removeAppender("secured")
    root.setLevel(level)
    context.updateLoggers()
    appender.stop()


def explained(frame: Any) -> str:
    """All that Spark says of a plan."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        frame.explain(True)
    return out.getvalue()


def executed(spark: SparkSession) -> str:
    """What Spark keeps of the plans that it has run, for its web page and its log of events."""
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    one = (executions.apply(index) for index in range(executions.size()))
    return "\n".join(f"{run.description()} {run.physicalPlanDescription()} {run.modifiedConfigs()}" for run in one)


def failure_of(read: Mapping[str, str], spark: SparkSession) -> str:
    """All that a batch that fails says, the causes in the JVM included."""
    with pytest.raises(SPARK_ERRORS) as raised:
        spark.read.format("pybroker").options(**read).load().collect()
    return "\n".join([str(raised.value), *(str(cause) for cause in causes(raised.value))])


def test_batches_and_streams_are_read_and_written_without_telling_secrets(
    spark: SparkSession, secured: Secured, logged: Path, tmp_path: Path
) -> None:
    rows = spark.createDataFrame(ROWS, "value string").coalesce(1)
    rows.write.format("pybroker").mode("append").options(**secured.options(topic=TOPIC)).save()
    from_start = secured.options(startingOffsets="earliest")

    stream = spark.readStream.format("pybroker").options(subscribe=TOPIC, **from_start).load().select("value")
    checkpoint = tmp_path / "checkpoint"
    writer = stream.writeStream.format("pybroker").options(**secured.options(topic=COPY))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(240)

    batch = spark.read.format("pybroker").options(subscribe=COPY, **from_start).load()
    assert sorted(tuple(row) for row in batch.selectExpr("cast(value as string)").collect()) == ROWS

    plans = (explained(batch), explained(stream), explained(query), executed(spark), query.lastProgress)
    assert "kafka.ssl.keystore.key=*********(redacted)" in plans[1], "a stream's plan has its options"
    assert secured.hides(*plans)
    kept = [file.read_bytes().decode(errors="replace") for file in checkpoint.rglob("*") if file.is_file()]
    assert kept
    assert secured.hides(*kept)
    log = logged.read_text()
    assert "Starting task" in log
    assert secured.hides(log)


def test_what_fails_says_why_and_no_secret(spark: SparkSession, secured: Secured, logged: Path) -> None:
    read = secured.options(subscribe=TOPIC)
    for wrong, said in (
        ({"kafka.sasl.jaas.config": read["kafka.sasl.jaas.config"].replace(GOOD, BAD)}, "SCRAM-SHA-512"),
        ({"kafka.ssl.keystore.certificate.chain": "none"}, "ssl.* settings: certificates: the text has no"),
        ({"startingOffset": "earliest"}, "did you mean startingOffsets?"),
    ):
        failure = failure_of({**read, **wrong}, spark)
        assert said in failure
        assert secured.hides(failure)
    assert secured.hides(logged.read_text())


def test_a_job_takes_passwords_from_a_file(
    spark: SparkSession, secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, lines = tmp_path / "client.properties", tmp_path / "lines.txt"
    lines.write_text("a\nb\n")

    def run(password: str) -> tuple[int, str]:
        given = secured.properties | {"bootstrap.servers": "unused:1"}
        config.write_text(escaped(given).replace(GOOD, password))
        where = ["--bootstrap-server", secured.servers, "--command-config", str(config)]
        status = job.main(ingest.JOB, [*where, "--source", str(lines), "--format", "text", "--topic", LINES])
        return status, "".join(capsys.readouterr())

    status, printed = run(GOOD)
    assert (status, printed) == (0, f"ingest: 2 rows read, 2 records to topic '{LINES}'\n")
    status, printed = run(BAD)
    assert status == 1
    assert "SCRAM-SHA-512" in printed
    assert secured.hides(printed)


def escaped(properties: Mapping[str, str]) -> str:
    """A properties file, in which a value of several lines is one."""
    return "".join("{}={}\n".format(key, value.replace("\n", "\\n")) for key, value in properties.items())
