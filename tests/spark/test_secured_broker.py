"""Claims about the format `pybroker`, jobs and loads over SASL_SSL: they work, and no plan, log or error has a secret.

With a delegation token no task has the password either.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pybroker_spark
from pybench import main as pybench
from pybroker.client import Admin, NewTopic
from pybroker.client.errors import AuthenticationError
from pybroker.testing import Broker
from pybroker.testing.certificates import Authority
from pybroker_spark.delegation import DelegationError
from pybroker_spark.load import CONFLUENT, LoadError, LoadPlan, ProducerPlan, run
from pybroker_spark.pipelines import ingest, job
from pybroker_spark.spark_errors import SPARK_ERRORS, causes
from tests.support.conditions import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java

TOPIC, COPY, LINES, DELEGATED, LOADED = "secured", "secured-copy", "secured-lines", "by-token", "secured-load"
# None has a word by which Spark recognizes a secret, so that what hides it is not luck.
GOOD, BAD = "alices-Zq8-phrase", "another-Zq9-phrase"
ROWS = [("0",), ("1",), ("2",)]
TOKEN_MS = 4000
"""The life of a token that nobody renews."""


class Secured:
    """A broker that asks for a password over TLS, and a client that also has a certificate and its key."""

    def __init__(self, broker: Broker) -> None:
        own = Authority().issue("alice")
        self.servers = broker.bootstrap_servers
        self.by_password = broker.client_properties("alice", mechanism="PLAIN")
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
    tokens = {"delegation.token.secret.key": "of the broker", "delegation.token.expiry.time.ms": f"{TOKEN_MS}"}
    with Broker(security="SASL_SSL", users={"alice": GOOD}, properties=tokens) as broker:
        with Admin(broker.bootstrap_servers, broker.client_properties("alice")) as admin:
            names = (TOPIC, COPY, LINES, DELEGATED, LOADED)
            admin.create_topics([NewTopic(name, 1) for name in names])
            for name in names:
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
    for wrong, reported in (
        ({"kafka.sasl.jaas.config": read["kafka.sasl.jaas.config"].replace(GOOD, BAD)}, "SCRAM-SHA-512"),
        ({"kafka.ssl.keystore.certificate.chain": "none"}, "ssl.* settings: certificates: the text has no"),
        ({"startingOffset": "earliest"}, "did you mean startingOffsets?"),
    ):
        failure = failure_of({**read, **wrong}, spark)
        assert reported in failure
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


def tokens_of(secured: Secured) -> dict[str, int]:
    """When the tokens end that there are, by id."""
    with Admin(secured.servers, secured.by_password) as admin:
        return {one.token_id: one.expires_ms for one in admin.describe_tokens()}


def test_tasks_sign_in_by_a_token_that_is_renewed_and_ends_with_the_work(
    spark: SparkSession, secured: Secured, logged: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pybroker")
    with pybroker_spark.delegated(secured.servers, {**secured.properties, **secured.by_password}) as token:
        options = token.options
        assert GOOD not in str(options)
        assert not any("keystore" in name for name in options), "the certificate is the driver's as well"
        ends = tokens_of(secured)[token.token_id]
        wait_until(lambda: tokens_of(secured)[token.token_id] > ends, within=60, what="the token is renewed")
        rows = spark.createDataFrame(ROWS, "value string").coalesce(1)
        rows.write.format("pybroker").mode("append").options(**options, topic=DELEGATED).save()
        stream = spark.readStream.format("pybroker").options(**options, subscribe=DELEGATED, startingOffsets="earliest")
        writer = stream.load().select("value").writeStream.format("pybroker").options(**options, topic=DELEGATED)
        writer = writer.option("checkpointLocation", str(tmp_path / "delegated")).trigger(availableNow=True)
        query = writer.start()
        assert query.awaitTermination(240)
        batch = spark.read.format("pybroker").options(**options, subscribe=DELEGATED).load()
        assert batch.count() == 2 * len(ROWS), "after the time that the token had at first"
        secret = options["kafka.sasl.jaas.config"].partition('password="')[2].partition('"')[0]
        texts = [explained(batch), explained(query), executed(spark), logged.read_text(), caplog.text, repr(token)]
        texts += [file.read_text(errors="replace") for file in (tmp_path / "delegated").rglob("*") if file.is_file()]
        assert len(secret) > 80
        assert not any(hidden in text for hidden in (secret, *secured.secrets) for text in texts)
        with pytest.raises(TypeError, match="has the driver's credentials and is not sent"):
            pickle.dumps(token)
    assert token.token_id not in tokens_of(secured)
    with pytest.raises(AuthenticationError), Admin(secured.servers, properties_of(options)) as admin:
        admin.list_topics()


def properties_of(options: Mapping[str, str]) -> dict[str, object]:
    """The client's settings of the format's options."""
    given = {name.removeprefix("kafka."): value for name, value in options.items()}
    return {name: value for name, value in given.items() if name != "bootstrap.servers"}


def test_a_load_and_a_job_sign_in_by_tokens(
    spark: SparkSession, secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    producer = ProducerPlan(
        bootstrap_servers=secured.servers,
        properties={**secured.by_password, "linger.ms": "1"},
        topic=LOADED,
        partitions=(0,),
        record_size=50,
        records=100,
    )
    other = LoadPlan(run=7, clients=(dataclasses.replace(producer, engine=CONFLUENT),), tasks=1)
    with pytest.raises(LoadError, match="librdkafka cannot sign in by a delegation token"):
        run(spark, other, delegation_token=True)
    plan = LoadPlan(run=7, clients=(producer, producer), tasks=2)
    result = run(spark, plan, delegation_token=True)
    assert result.is_whole()
    used = {str(client.properties["sasl.jaas.config"]) for client in result.plan.clients}
    assert len(used) == 1, "one token for both, who are one user of one cluster"
    assert 'tokenauth="true"' in used.pop()
    config, lines = tmp_path / "client.properties", tmp_path / "lines.txt"
    lines.write_text("a\nb\n")
    config.write_text(escaped(secured.by_password))
    where = ["--bootstrap-server", secured.servers, "--command-config", str(config), "--delegation-token"]
    assert pybench.main(["spark-consumer-perf", *where, "--topic", LOADED, "--num-records", "200"]) == 0
    assert ", 200, " in capsys.readouterr().out
    assert job.main(ingest.JOB, [*where, "--source", str(lines), "--format", "text", "--topic", LINES]) == 0
    assert "ingest: 2 rows read" in capsys.readouterr().out
    assert tokens_of(secured) == {}


def test_who_cannot_have_a_token_learns_why(secured: Secured) -> None:
    with pytest.raises(DelegationError, match=r"security\.protocol=SSL: tasks sign in by SASL"):
        pybroker_spark.delegated(secured.servers, {"security.protocol": "SSL"})
    with pytest.raises(DelegationError, match="tokens are shown by SCRAM-SHA-512 or"):
        pybroker_spark.delegated(secured.servers, secured.by_password, mechanism="PLAIN")
    wrong = {**secured.by_password, "sasl.jaas.config": secured.by_password["sasl.jaas.config"].replace(GOOD, BAD)}
    with pytest.raises(DelegationError, match="no delegation token for tasks: ") as refused:
        pybroker_spark.delegated(secured.servers, wrong).__enter__()
    assert secured.hides(refused.value)
    with pybroker_spark.delegated(secured.servers, secured.by_password) as token:
        refusal = pytest.raises(DelegationError, match="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED")
        with refusal, pybroker_spark.delegated(secured.servers, token.properties):
            pass
