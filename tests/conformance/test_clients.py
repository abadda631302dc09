"""Real clients create a topic, produce 100,000 records with every codec, and read back the same bytes.

Among three brokers it is a fifth of them: who answers for which partition does not depend on how many there are.
Consumers assign partitions to themselves. Each client is run in its defaults as far as that allows.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator

import aiokafka
import aiokafka.admin
import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.admin
import pytest

from pybench.peers import java
from tests.conformance.conftest import Server, Topic
from tests.support import corpus, kafka_tools, programs
from tests.support.corpus import CODECS, PARTITIONS, RECORDS, Audit
from tests.support.franz import run_corpus

pytestmark = pytest.mark.one_and_three

PATIENCE_SECONDS = 60


@pytest.fixture
def count(server: Server) -> int:
    """How many records are sent."""
    return RECORDS // 5 if len(server.brokers) > 1 else RECORDS


def until_complete(audit: Audit) -> Iterator[None]:
    """Turns of a read loop, until the audit is complete; fails after a minute."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not audit.complete:
        assert time.monotonic() < deadline, f"not everything was read within {PATIENCE_SECONDS} s"
        yield


@pytest.mark.parametrize("codec", CODECS)
def test_confluent_kafka_reads_back_what_it_wrote(server: Server, topic_name: str, codec: str, count: int) -> None:
    address = {"bootstrap.servers": server.bootstrap_servers}
    admin = confluent_kafka.admin.AdminClient(address)
    admin.create_topics([confluent_kafka.admin.NewTopic(topic_name, PARTITIONS, -1)])[topic_name].result(60)

    failed = []
    producer = confluent_kafka.Producer(
        {
            **address,
            "compression.type": codec,
            "enable.idempotence": True,
            "linger.ms": 5,
            "queue.buffering.max.messages": 2 * count,
            "on_delivery": lambda error, _message: failed.append(error) if error else None,
        }
    )
    for sent in corpus.records(count):
        producer.produce(topic_name, sent.value, sent.key, sent.partition, headers=list(sent.headers))
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert failed == []

    audit = Audit(count)
    consumer = confluent_kafka.Consumer({**address, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([confluent_kafka.TopicPartition(topic_name, index, 0) for index in range(PARTITIONS)])
    try:
        for _ in until_complete(audit):
            for got in consumer.consume(10_000, 0.2):
                assert got.error() is None
                audit.see(got.partition(), got.offset(), got.key(), got.value(), got.headers() or ())
    finally:
        consumer.close()
    assert audit.complete


@pytest.mark.parametrize("codec", CODECS)
def test_kafka_python_reads_back_what_it_wrote(server: Server, topic_name: str, codec: str, count: int) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    admin.create_topics([kafka.admin.NewTopic(topic_name, PARTITIONS, -1)])
    admin.close()

    producer = kafka.KafkaProducer(
        bootstrap_servers=server.bootstrap_servers,
        compression_type=None if codec == "none" else codec,
        batch_size=1 << 18,
        linger_ms=20,
    )
    sending = [
        producer.send(topic_name, sent.value, sent.key, list(sent.headers), sent.partition)
        for sent in corpus.records(count)
    ]
    producer.flush(PATIENCE_SECONDS)
    producer.close()
    assert all(one.succeeded() for one in sending)

    audit = Audit(count)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=server.bootstrap_servers,
        group_id=None,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    consumer.assign([kafka.TopicPartition(topic_name, index) for index in range(PARTITIONS)])
    try:
        for _ in until_complete(audit):
            for part, batch in consumer.poll(timeout_ms=200, max_records=10_000).items():
                for got in batch:
                    audit.see(part.partition, got.offset, got.key, got.value, got.headers)
    finally:
        consumer.close()
    assert audit.complete


@pytest.mark.parametrize("codec", CODECS)
async def test_aiokafka_reads_back_what_it_wrote(server: Server, topic_name: str, codec: str, count: int) -> None:
    admin = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    await admin.start()
    await admin.create_topics([aiokafka.admin.NewTopic(topic_name, PARTITIONS, len(server.brokers))])
    await admin.close()

    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=server.bootstrap_servers,
        compression_type=None if codec == "none" else codec,
        max_batch_size=1 << 18,
        enable_idempotence=True,
    )
    await producer.start()
    sending = [
        await producer.send(topic_name, sent.value, sent.key, sent.partition, headers=list(sent.headers))
        for sent in corpus.records(count)
    ]
    await producer.flush()
    await producer.stop()
    assert all(one.done() and one.exception() is None for one in sending)

    audit = Audit(count)
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=server.bootstrap_servers,
        group_id=None,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    consumer.assign([aiokafka.TopicPartition(topic_name, index) for index in range(PARTITIONS)])
    try:
        for _ in until_complete(audit):
            for part, batch in (await consumer.getmany(timeout_ms=200, max_records=10_000)).items():
                for got in batch:
                    audit.see(part.partition, got.offset, got.key, got.value, got.headers)
    finally:
        await consumer.stop()
    assert audit.complete


@pytest.mark.kcat
@pytest.mark.parametrize("codec", CODECS)
def test_kcat_reads_back_what_it_wrote(server: Server, topic_name: str, codec: str, count: int) -> None:
    """kcat has no command to create a topic: producing to one that is not there makes it."""
    kcat = [programs.program("kcat"), "-b", server.bootstrap_servers, "-t", topic_name, "-q"]
    sent = corpus.lines(count)
    text = b"".join(key + b"\t" + value + b"\n" for key, value in sent)
    produced = subprocess.run(
        [*kcat, "-P", "-K", "\\t", "-z", codec, "-X", "enable.idempotence=true"],
        input=text,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (produced.returncode, produced.stderr) == (0, b"")
    consumed = subprocess.run(
        [*kcat, "-C", "-p", "0", "-o", "beginning", "-e", "-f", "%o\\t%k\\t%s\\n"],
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert consumed.returncode == 0, consumed.stderr
    assert consumed.stdout == b"".join(b"%d\t%s\t%s\n" % (at, key, value) for at, (key, value) in enumerate(sent))


@pytest.mark.parametrize("codec", CODECS)
def test_franz_go_reads_back_what_it_wrote(
    server: Server, create: Callable[..., Topic], codec: str, count: int
) -> None:
    topic = create(partitions=PARTITIONS).name
    at = (server.bootstrap_servers, topic)
    assert list(run_corpus("produce", *at, codec, sent=corpus.records(count), timeout_s=PATIENCE_SECONDS)) == []
    audit = Audit(count)
    for got in run_corpus("consume", *at, str(count), timeout_s=PATIENCE_SECONDS):
        audit.see(*got)
    assert audit.complete


@pytest.mark.java
@pytest.mark.parametrize("codec", CODECS)
def test_kafkas_own_tools_read_back_what_they_wrote(server: Server, topic_name: str, codec: str, count: int) -> None:
    programs.kafka_tools()
    address = ("--bootstrap-server", server.bootstrap_servers)
    made = kafka_tools.run("topics", *address, "--create", "--topic", topic_name, "--partitions", "1")
    assert f"Created topic {topic_name}." in made.stdout, made.stdout + made.stderr

    produced = kafka_tools.run(
        "producer-perf",
        *("--topic", topic_name, "--num-records", str(count), "--throughput", "-1", "--payload-monotonic"),
        *("--producer-props", f"bootstrap.servers={server.bootstrap_servers}", f"compression.type={codec}"),
    )
    assert produced.returncode == 0, produced.stderr
    assert produced.stdout.splitlines()[-1].startswith(f"{count} records sent, ")

    consumed = java.run_java_tool(
        "console-consumer",
        *address,
        *("--topic", topic_name, "--partition", "0", "--offset", "earliest", "--max-messages", str(count)),
        *("--timeout-ms", str(PATIENCE_SECONDS * 1000), "--property", "print.offset=true"),
    )
    assert f"Processed a total of {count} messages" in consumed.stderr + consumed.stdout
    seen = [line.split("\t") for line in consumed.stdout.splitlines() if line.startswith("Offset:")]
    assert [(offset, value) for offset, value in seen] == [(f"Offset:{n}", str(n)) for n in range(count)]
