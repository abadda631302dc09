"""The console's commands print what Kafka's tools print of the same topics of one broker, and read what these read."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pybench.peers import java
from pybroker.cli.main import main
from pybroker.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from pybroker.client.consuming.fetcher import Record
from tests.conformance.conftest import AGAINST_KAFKA, Server
from tests.support import programs

pytestmark = pytest.mark.java

TOPIC = "console"
NUMBERS = "numbers"
RECORDS = 5
Both = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture(scope="module")
def filled(server: Server) -> Iterator[str]:
    """Records with and without key, value and headers; and one topic of numbers."""
    programs.kafka_tools()
    with Admin(server.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, -1), NewTopic(NUMBERS, 1, -1)])
        for name in (TOPIC, NUMBERS):
            admin.wait_for_leaders(name)
        with Producer(server.bootstrap_servers) as producer:
            at = 1_700_000_000_000
            producer.send(TOPIC, b"plain", timestamp_ms=at)
            producer.send(TOPIC, b"keyed", b"k", timestamp_ms=at + 1, headers=[("h", b"1"), ("none", None)])
            producer.send(TOPIC, None, b"gone", timestamp_ms=at + 2)
            producer.send(TOPIC, "grüße\ttab".encode(), "ü".encode(), timestamp_ms=at + 3)
            producer.send(TOPIC, b"", b"", timestamp_ms=at + 4, headers=[("h", b"")])
            for number in (0.0, 1.5, -2e-5, 1e21, 12345678.9):
                producer.send(NUMBERS, struct.pack(">d", number), struct.pack(">i", int(number) % 1000))
            producer.flush()
        with Consumer(server.bootstrap_servers, {"group.id": "shown", "auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0)])
            while not consumer.poll(0.1):
                pass
            consumer.commit()
        yield server.bootstrap_servers
        admin.delete_topics([TOPIC, NUMBERS])


@pytest.fixture
def both(filled: str, capfd: pytest.CaptureFixture[str]) -> Both:
    """Runs Kafka's console consumer, then ours: the lines that each printed."""

    def run(topic: str, *options: str, count: int = RECORDS) -> tuple[list[str], list[str]]:
        where = ["--bootstrap-server", filled, "--topic", topic, "--partition", "0", "--offset", "earliest"]
        arguments = [*where, "--max-messages", str(count), *options]
        theirs = java.run_java_tool("console-consumer", *arguments)
        assert f"Processed a total of {count} messages" in theirs.stderr
        capfd.readouterr()
        assert main(["console-consumer", *arguments]) == 0
        ours = capfd.readouterr()
        assert ours.err.splitlines()[-1] == f"Processed a total of {count} messages"
        return ours.out.splitlines(), theirs.stdout.splitlines()

    return run


EVERYTHING = [
    f"print.{part}=true" for part in ("timestamp", "partition", "offset", "delivery", "headers", "key", "value")
]


def properties(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--formatter-property", pair)]


@pytest.mark.parametrize(
    "pairs",
    [
        [],
        EVERYTHING,
        [
            *EVERYTHING[4:6],
            "key.separator= | ",
            "headers.separator=;",
            "null.literal=NULL",
            "line.separator=<\n",
            "print.value=false",
        ],
    ],
    ids=["plain", "everything", "separators"],
)
def test_records_are_printed_alike(both: Both, pairs: list[str]) -> None:
    ours, theirs = both(TOPIC, *properties(*pairs))
    assert ours == theirs
    assert len(ours) >= RECORDS


def test_numbers_are_printed_alike(both: Both) -> None:
    named = [f"{part}.deserializer=org.apache.kafka.common.serialization.{kind}Deserializer" for part, kind in KINDS]
    ours, theirs = both(NUMBERS, *properties("print.key=true", *named))
    assert ours == theirs
    assert ours[1].endswith("1.5")


KINDS = (("key", "Integer"), ("value", "Double"))


def test_committed_offsets_are_shown_alike(filled: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The offsets topic holds what other tests of the session committed, too: all of it is compared."""
    formatter = ["--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"]
    arguments = ["--bootstrap-server", filled, "--topic", "__consumer_offsets", "--from-beginning", *formatter]
    # Kafka's consumer ends by time only, because it reads the records of its own group too.
    theirs = java.run_java_tool("console-consumer", *arguments, "--timeout-ms", "20000")
    capfd.readouterr()
    assert main(["console-consumer", *arguments, "--timeout-ms", "1500"]) == 0
    assert sorted(objects(capfd.readouterr().out)) == sorted(objects(theirs.stdout))


def objects(text: str) -> list[str]:
    """Objects of JSON that stand behind each other, each as text with its keys in order."""
    decoder, found, at = json.JSONDecoder(), [], 0
    text = text.strip()
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        found.append(json.dumps(value))
        at += len(text[at:]) - len(text[at:].lstrip())
    assert found
    return found


LINES = "h:1,none:NULL\tk\tv\n\t\tempty parts\r\nNULL\tNULL\tNULL\nlast:x\tk2\tübrig\twith tabs"
READER = ["parse.key=true", "parse.headers=true", "null.marker=NULL"]


def shown(records: list[Record]) -> list[tuple[object, ...]]:
    return [(record.key, record.value, record.headers) for record in records]


def read_all(servers: str, topic: str, count: int) -> list[Record]:
    with Consumer(servers, {"auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        records: list[Record] = []
        while len(records) < count:
            records += consumer.poll(60)
        return records


@pytest.mark.parametrize("sync", [[], ["--sync"]], ids=["async", "sync"])
def test_lines_become_the_same_records(
    filled: str, topic_name: str, sync: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = ["parse.headers=true", "headers.delimiter=\t", *READER] if sync else READER
    options = [word for pair in pairs for word in ("--reader-property", pair)]
    text = LINES.replace("\t\tempty parts", "e:\t\tempty parts")
    with Admin(filled) as admin:
        admin.create_topics([NewTopic(topic_name, 1, -1)])
        admin.wait_for_leaders(topic_name)
        arguments = ["--bootstrap-server", filled, "--topic", topic_name, *options]
        if not sync:
            theirs = java.run_java_tool("console-producer", *arguments, stdin=text)
            assert theirs.returncode == 0, theirs.stderr
            expected = shown(read_all(filled, topic_name, 4))
        else:
            expected = list(PARSED)
        with given(text.encode()) as source, monkeypatch.context() as patched:
            patched.setattr("sys.stdin", source)
            assert main(["console-producer", *arguments, *sync]) == 0
        found = shown(read_all(filled, topic_name, 4 if sync else 8))[-4:]
        admin.delete_topics([topic_name])
    assert found == expected == PARSED


PARSED = [
    (b"k", b"v", [("h", b"1"), ("none", None)]),
    (b"", b"empty parts", [("e", b"")]),
    (None, None, []),
    (b"k2", "übrig\twith tabs".encode(), [("last", b"x")]),
]


@contextmanager
def given(text: bytes) -> Iterator[io.TextIOWrapper]:
    """A standard input that holds a text: a pipe whose writing end is closed."""
    reading, writing = os.pipe()
    os.write(writing, text)
    os.close(writing)
    with io.TextIOWrapper(io.FileIO(reading)) as source:
        yield source


def test_the_versions_of_brokers_are_shown_alike(filled: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Streams groups are compared with the tool of the release that has their newest versions."""
    theirs = java.run_java_tool("broker-api-versions", "--bootstrap-server", filled).stdout.splitlines()
    command = java.streams_group_java_command("org.apache.kafka.tools.BrokerApiVersionsCommand")
    newer = subprocess.run(
        [*command, "--bootstrap-server", filled], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    of_streams = {line.split("(")[0]: line for line in newer if line.startswith("\tStreamsGroup")}
    capfd.readouterr()
    assert main(["broker-api-versions", "--bootstrap-server", filled]) == 0
    assert capfd.readouterr().out.splitlines() == [of_streams.get(line.split("(")[0], line) for line in theirs]


def events(text: str) -> list[dict[str, object]]:
    """Lines of events without their times."""
    found = []
    for line in text.splitlines():
        event = json.loads(line)
        assert isinstance(event.pop("timestamp"), int)
        event.pop("avg_throughput", None)
        found.append(event)
    return found


@pytest.mark.skipif(AGAINST_KAFKA, reason="what differs there is which broker answers, not what is printed")
def test_the_verifiable_pair_prints_the_same_events(
    filled: str, topic_name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with Admin(filled) as admin:
        admin.create_topics([NewTopic(topic_name, 1, -1)])
        admin.wait_for_leaders(topic_name)
        options = ["--max-messages", "4", "--value-prefix", "7", "--repeating-keys", "3"]
        where = ["--bootstrap-server", filled, "--topic", topic_name]
        theirs = events(java.run_java_tool("org.apache.kafka.tools.VerifiableProducer", *where, *options).stdout)
        capfd.readouterr()
        assert main(["verifiable-producer", *where, *options]) == 0
        ours = events(capfd.readouterr().out)
        for event in ours:
            if "offset" in event:
                event["offset"] = int(str(event["offset"])) - 4
        assert ours == theirs
        options = ["--max-messages", "8", "--verbose", "--group-id"]
        tool = "org.apache.kafka.tools.VerifiableConsumer"
        theirs = events(java.run_java_tool(tool, *where, *options, f"{topic_name}-1").stdout)
        capfd.readouterr()
        assert main(["verifiable-consumer", *where, *options, f"{topic_name}-2"]) == 0
        ours = events(capfd.readouterr().out)
        admin.delete_topics([topic_name])
    assert ours == theirs
