from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from pybroker.cli.main import main
from pybroker.cli.topics import _Described, _partition_line, _topic_line
from pybroker.client.administration.topics import PartitionDescription, Reassignment, TopicDescription
from pybroker.testing import Broker

Topics = Callable[..., int]
OF_CONFIGS = (
    """Option combination "[[bootstrap-server], [config]]" can't be used with option "[alter]" """
    "(To alter topic configurations, the kafka-configs tool can be used.)"
)


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topics(shared: Broker) -> Iterator[Topics]:
    def run(*arguments: str) -> int:
        return main(["topics", "--bootstrap-server", shared.bootstrap_servers, *arguments])

    yield run
    run("--delete", "--topic", ".*", "--if-exists")


def test_topics_are_created_listed_and_deleted(topics: Topics, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("orders", "invoices"):
        assert topics("--create", "--topic", name) == 0
    assert topics("--list") == 0
    assert topics("--delete", "--topic", "in.*") == 0
    assert topics("--list") == 0
    assert capsys.readouterr().out.splitlines() == [
        "Created topic orders.",
        "Created topic invoices.",
        "invoices",
        "orders",
        "orders",
    ]


def test_a_description_has_the_form_of_kafkas_tool(topics: Topics, capsys: pytest.CaptureFixture[str]) -> None:
    topics("--create", "--topic", "orders", "--partitions", "2", "--config", "retention.ms=1000")
    capsys.readouterr()
    assert topics("--describe", "--topic", "orders") == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"Topic: orders\tTopicId: [\w-]{22}\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: retention\.ms=1000",
        first,
    )
    assert others == [
        f"\tTopic: orders\tPartition: {index}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
        for index in range(2)
    ]


def test_a_description_can_be_asked_for_by_id(topics: Topics, capsys: pytest.CaptureFixture[str]) -> None:
    topics("--create", "--topic", "orders")
    topics("--describe", "--topic", "orders")
    first, *partitions = capsys.readouterr().out.splitlines()[1:]
    topic_id = re.search(r"TopicId: (\S+)", first)
    assert topic_id is not None
    assert topics("--describe", "--topic-id", topic_id[1]) == 0
    # As Kafka's tool, which asks by Metadata for an id.
    described = [line.replace("Elr: ", "Elr: N/A") for line in partitions]
    assert capsys.readouterr().out.splitlines() == [first, *described]


def test_what_is_no_id_is_reported_with_what_an_id_is(topics: Topics, capsys: pytest.CaptureFixture[str]) -> None:
    assert topics("--describe", "--topic-id", "!!!!", "--if-exists") == 1
    words = "Illegal base64 character 21\n"
    assert capsys.readouterr() == (
        "",
        f"pybroker topics: --topic-id !!!!: expected 22 characters as --describe shows them: {words}",
    )


@pytest.mark.parametrize("limit", ["1", "2", "3", "2000"])
def test_partitions_may_be_asked_for_in_parts(topics: Topics, capsys: pytest.CaptureFixture[str], limit: str) -> None:
    topics("--create", "--topic", "large", "--partitions", "3")
    topics("--create", "--topic", "small")
    capsys.readouterr()
    assert topics("--describe", "--partition-size-limit-per-response", limit) == 0
    described = [line.split("\t")[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("\t")]
    assert described == [["Topic: large", f"Partition: {index}"] for index in range(3)] + [
        ["Topic: small", "Partition: 0"]
    ]


def test_only_what_is_asked_for_is_described(topics: Topics, capsys: pytest.CaptureFixture[str]) -> None:
    topics("--create", "--topic", "plain")
    topics("--create", "--topic", "special", "--config", "retention.ms=1")
    capsys.readouterr()
    topics("--describe", "--under-replicated-partitions")
    topics("--describe", "--unavailable-partitions")
    assert capsys.readouterr().out == ""
    topics("--describe", "--topics-with-overrides")
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == ["Topic: special"]
    topics("--describe", "--at-min-isr-partitions")
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_topic_that_is_there_fails_unless_that_is_allowed(topics: Topics, capsys: pytest.CaptureFixture[str]) -> None:
    topics("--create", "--topic", "orders")
    assert topics("--create", "--topic", "orders") == 1
    assert capsys.readouterr() == (
        "Created topic orders.\n",
        "pybroker topics: org.apache.kafka.common.errors.TopicExistsException: Topic 'orders' already exists.\n",
    )
    assert topics("--create", "--topic", "orders", "--if-not-exists") == 0


def test_a_topic_that_is_not_there_fails_unless_that_is_allowed(
    topics: Topics, capsys: pytest.CaptureFixture[str]
) -> None:
    for action in ("--describe", "--delete"):
        assert topics(action, "--topic", "nothing") == 1
        words = "Topic 'nothing' does not exist as expected\n"
        assert capsys.readouterr() == ("", f"pybroker topics: {words}")
        assert topics(action, "--topic", "nothing", "--if-exists") == 0


@pytest.mark.parametrize(
    ("arguments", "refused", "other"),
    [
        (["--describe", "--config", "x=y", "--partitions", "3"], "config", "describe"),
        (["--list", "--config", "x=y"], "config", "list"),
        (["--delete", "--topic", "kept", "--config", "x=y"], "config", "delete"),
        (["--delete", "--topic", "kept", "--partitions", "3"], "partitions", "delete"),
        (["--list", "--partitions", "3"], "partitions", "list"),
        (["--describe", "--partitions", "0"], "partitions", "describe"),
        (
            ["--alter", "--topic", "kept", "--partitions", "4", "--replication-factor", "1"],
            "replication-factor",
            "alter",
        ),
        (["--describe", "--replication-factor", "1"], "replication-factor", "describe"),
        (["--delete", "--topic", "kept", "--replica-assignment", "1"], "replica-assignment", "delete"),
        (
            ["--create", "--topic", "new", "--partitions", "2", "--replica-assignment", "1,1"],
            "replica-assignment",
            "partitions",
        ),
        (
            ["--create", "--topic", "new", "--replication-factor", "1", "--replica-assignment", "1,1"],
            "replica-assignment",
            "replication-factor",
        ),
        (["--list", "--under-replicated-partitions"], "under-replicated-partitions", "list"),
        (["--create", "--topic", "new", "--under-min-isr-partitions"], "under-min-isr-partitions", "create"),
        (["--delete", "--topic", "kept", "--at-min-isr-partitions"], "at-min-isr-partitions", "delete"),
        (["--list", "--unavailable-partitions"], "unavailable-partitions", "list"),
        (
            ["--describe", "--topics-with-overrides", "--under-replicated-partitions"],
            "under-replicated-partitions",
            "topics-with-overrides",
        ),
        (
            ["--describe", "--topics-with-overrides", "--unavailable-partitions"],
            "unavailable-partitions",
            "topics-with-overrides",
        ),
        (["--create", "--topic", "new", "--topics-with-overrides"], "topics-with-overrides", "create"),
        (["--list", "--if-exists"], "if-exists", "list"),
        (["--create", "--topic", "new", "--if-exists"], "if-exists", "create"),
        (["--describe", "--if-not-exists"], "if-not-exists", "describe"),
        (["--delete", "--topic", "kept", "--if-not-exists"], "if-not-exists", "delete"),
        (["--delete", "--topic", "kept", "--exclude-internal"], "exclude-internal", "delete"),
    ],
)
def test_an_option_of_another_action_is_refused_and_nothing_is_done(
    topics: Topics, capsys: pytest.CaptureFixture[str], arguments: list[str], refused: str, other: str
) -> None:
    topics("--create", "--topic", "kept")
    capsys.readouterr()
    assert topics(*arguments) == 1
    words = f'Option "[{refused}]" can\'t be used with option "[{other}]"'
    assert capsys.readouterr() == ("", f"pybroker topics: {words}\n")
    topics("--list")
    assert capsys.readouterr().out == "kept\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--create"], 'Missing required argument "[topic]"'),
        (["--delete"], 'Missing required argument "[topic]"'),
        (["--alter", "--partitions", "2"], 'Missing required argument "[topic]"'),
        (["--alter", "--topic", "x"], 'Missing required argument "[partitions]"'),
        (["--describe", "--if-exists"], "--topic or --topic-id is required to describe a topic"),
        (
            ["--alter", "--topic", "x", "--config", "a=b", "--partitions", "3"],
            OF_CONFIGS,
        ),
    ],
)
def test_an_action_without_what_it_needs_is_refused(
    topics: Topics, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert topics(*arguments) == 1
    assert capsys.readouterr() == ("", f"pybroker topics: {words}\n")


def test_a_name_beside_an_id_is_warned_of_and_not_in_a_document(
    topics: Topics, capsys: pytest.CaptureFixture[str]
) -> None:
    topics("--create", "--topic", "orders")
    requested = ("--describe", "--if-exists", "--topic", "orders", "--topic-id", "A" * 22)
    capsys.readouterr()
    assert topics(*requested) == 0
    warning, first, _ = capsys.readouterr().out.splitlines()
    assert warning.startswith("Only topic id will be used when both --topic and --topic-id are specified")
    assert first.startswith("Topic: orders\t")
    assert topics(*requested, "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["topic"] == "orders"


def test_names_that_may_collide_are_warned_of(topics: Topics, capsys: pytest.CaptureFixture[str]) -> None:
    topics("--create", "--topic", "a.b")
    assert capsys.readouterr().out.startswith("WARNING: Due to limitations in metric names")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--partitions", "0"], "must be greater than 0"),
        (["--replication-factor", "0"], "between 1 and 32767"),
        (["--replication-factor", "2"], "InvalidReplicationFactorException: Unable to replicate"),
        (["--config", "retention"], "expected key=value"),
        (["--config", "retention.ms=soon"], "InvalidConfigurationException: "),
        (["--config", "foo=1"], "InvalidConfigurationException: Unknown topic config name: foo"),
        (["--topic", "a/b"], "InvalidTopicException: Topic name is invalid: 'a/b' contains"),
        (["--replica-assignment", "1:1"], "duplicate entries"),
        (["--replica-assignment", "1,1:2"], "different replication factor"),
        (["--replica-assignment", "x"], "expected broker ids"),
        (["--partitions", "99999999999"], "num_partitions: 99999999999: expected a whole number from -2147483648 to"),
        (["--replica-assignment", "99999999999"], "broker_ids[0]: 99999999999: expected a whole number"),
    ],
)
def test_what_cannot_be_created_is_reported_in_one_line(
    topics: Topics, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert topics("--create", "--topic", "wrong", *arguments) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert printed.out == ""


def test_a_broker_that_is_not_there_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--list",
        "--command-property",
        "default.api.timeout.ms=300",
        "--command-property",
        "request.timeout.ms=300",
    ]
    assert main(["topics", "--bootstrap-server", "127.0.0.1:1", *arguments]) == 1
    error = capsys.readouterr().err
    assert "127.0.0.1:1" in error
    assert len(error.splitlines()) == 1


def test_a_reassignment_in_progress_is_shown_and_leaves_added_replicas_out_of_the_factor() -> None:
    partition = PartitionDescription(0, 1, 0, (3, 1, 2), (1, 2), (), (), ())
    topic = TopicDescription("t", bytes(16), False, (partition,))
    described = _Described(topic, {}, {0: Reassignment((3, 1, 2), (3,), (2,))})
    assert described.replication_factor(partition) == 2
    assert "\tIsr: 1,2\tAdding Replicas: 3\tRemoving Replicas: 2\tElr: " in _partition_line(described, partition)
    assert "\tReplicationFactor: 2\t" in _topic_line(described)
    done = described._replace(reassignments={0: Reassignment((3, 1), (), (9,))})
    assert done.replication_factor(partition) == 3
