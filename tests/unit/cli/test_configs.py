from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pybroker.cli.configs import parse_added
from pybroker.cli.errors import CommandError
from pybroker.cli.main import main
from pybroker.client.administration.admin import Admin
from pybroker.testing import Broker

Configs = Callable[..., int]

UNKNOWN = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(["orders"])
        yield broker


@pytest.fixture
def configs(shared: Broker) -> Configs:
    def run(*arguments: str) -> int:
        return main(["configs", "--bootstrap-server", shared.bootstrap_servers, *arguments])

    return run


def test_a_topics_settings_are_changed_and_shown(configs: Configs, capsys: pytest.CaptureFixture[str]) -> None:
    topic = ("--entity-type", "topics", "--entity-name", "orders")
    added = "retention.ms=5,cleanup.policy=[compact,delete]"
    assert configs("--alter", *topic, "--add-config", added) == 0
    assert configs("--describe", "--topic", "orders") == 0
    assert configs("--alter", *topic, "--delete-config", "retention.ms,cleanup.policy") == 0
    assert configs("--describe", *topic) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Completed updating config for topic orders.",
        "Dynamic configs for topic orders are:",
        (
            "  cleanup.policy=compact,delete sensitive=false synonyms="
            "{DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}"
        ),
        "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5}",
        "Completed updating config for topic orders.",
        "Dynamic configs for topic orders are:",
    ]


def test_the_settings_of_one_broker_and_of_all_are_changed_and_shown(
    configs: Configs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "added.properties").write_text("message.max.bytes=2000\n")
    file = str(tmp_path / "added.properties")
    assert configs("--alter", "--broker", "1", "--add-config-file", file) == 0
    assert configs("--alter", "--broker-defaults", "--add-config", "log.retention.ms=7") == 0
    assert configs("--describe", "--entity-type", "brokers") == 0
    assert configs("--alter", "--broker", "1", "--delete-config", "message.max.bytes") == 0
    defaults = ("--entity-type", "brokers", "--entity-default")
    assert configs("--alter", *defaults, "--delete-config", "log.retention.ms") == 0
    assert configs("--describe", *defaults) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Completed updating config for broker 1.",
        "Completed updating default config for brokers in the cluster.",
        "Dynamic configs for broker 1 are:",
        (
            "  message.max.bytes=2000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:message.max.bytes=2000, "
            "DEFAULT_CONFIG:message.max.bytes=1048588}"
        ),
        "Default configs for brokers in the cluster are:",
        "  log.retention.ms=7 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7}",
        "Completed updating config for broker 1.",
        "Completed updating default config for brokers in the cluster.",
        "Default configs for brokers in the cluster are:",
    ]


def test_all_settings_are_shown_on_demand(configs: Configs, capsys: pytest.CaptureFixture[str]) -> None:
    assert configs("--describe", "--all", "--topic", "orders") == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first == "All configs for topic orders are:"
    assert "  flush.ms=9223372036854775807 sensitive=false synonyms={}" in others
    assert len(others) > 30


def test_what_is_not_there_is_reported(configs: Configs, capsys: pytest.CaptureFixture[str]) -> None:
    assert configs("--describe", "--topic", "nothing") == 0
    assert configs("--describe", "--broker", "7") == 0
    assert capsys.readouterr().out.splitlines() == [
        "The topic 'nothing' doesn't exist and doesn't have dynamic config.",
        "The broker '7' doesn't exist and doesn't have dynamic config.",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--alter", "--topic", "orders"], "At least one of --add-config, --add-config-file, or --delete-config"),
        (["--alter", "--topic", "orders", "--add-config", "flush.ms"], "must be in the format"),
        (["--alter", "--topic", "orders", "--add-config", "flush.ms=soon"], "flush.ms=soon: expected"),
        (["--alter", "--topic", "orders", "--add-config", "flsh.ms=1"], "is flush.ms meant?"),
        (["--alter", "--topic", "orders", "--add-config", "fl!=1"], "Invalid character found for config key: fl!"),
        (
            ["--alter", "--topic", "nothing", "--add-config", "flush.ms=1"],
            f"{UNKNOWN}: The topic 'nothing' does not exist.",
        ),
        (["--alter", "--topic", "nothing", "--delete-config", "flush.ms"], "The topic 'nothing' does not exist."),
        (["--describe", "--all", "--topic", "nothing"], f"{UNKNOWN}: The topic 'nothing' does not exist."),
        (["--alter", "--entity-type", "topics", "--add-config", "flush.ms=1"], "An entity name must be specified"),
        (["--alter", "--entity-type", "brokers", "--add-config", "flush.ms=1"], "An entity-name or default entity"),
        (["--describe", "--entity-type", "topics", "--entity-default"], "--entity-default must not be specified"),
        (["--describe"], "At least one entity type must be specified"),
        (["--describe", "--entity-type", "broker-loggers"], "An entity name must be specified with --describe"),
        (
            ["--alter", "--entity-type", "broker-loggers", "--entity-name", "1", "--add-config", "a=INFO"],
            "logger(s): a",
        ),
        (["--describe", "--user", "a", "--entity-type", "clients"], "should not be used in conjunction"),
        (["--describe", "--user", "a", "--topic", "b"], "Only 'users' and 'clients' entity types may be specified"),
        (
            ["--describe", "--entity-type", "users", "--entity-type", "users"],
            "Duplicate entity type(s) specified: users",
        ),
        (["--alter", "--entity-type", "users", "--add-config", "request_percentage=1"], "An entity-name or default"),
        (["--alter", "--user", "a", "--add-config", "request_rate=1"], "Unexpected config names: Set(request_rate)"),
        (["--alter", "--user", "a", "--add-config", "producer_byte_rate=fast"], "producer_byte_rate: fast"),
        (
            ["--alter", "--user", "a", "--add-config", "producer_byte_rate=0"],
            "producer_byte_rate must be greater than 0",
        ),
        (["--alter", "--user", "a", "--delete-config", "producer_byte_rate"], "Invalid config(s): producer_byte_rate"),
        (["--alter", "--client", "a", "--add-config", "SCRAM-SHA-256=[password=x]"], "Only quota configs can be added"),
        (["--alter", "--ip-defaults", "--add-config", "producer_byte_rate=1"], "Only connection quota configs can be"),
        (["--describe", "--ip", "no.such.host.invalid"], "must be a valid IP or resolvable host"),
        (
            ["--alter", "--user", "a", "--add-config", "request_percentage=1,SCRAM-SHA-256=[password=x]"],
            "Cannot alter both quota and SCRAM credential configs simultaneously",
        ),
        (["--describe", "--entity-type", "planets"], "Invalid entity type planets"),
        (["--describe", "--entity-type", "topics", "--topic", "x"], "should not be used in conjunction"),
        (["--describe", "--broker", "one"], "must be a valid integer broker id, but it is: one"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(
    configs: Configs, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert configs(*arguments) == 1
    reported = capsys.readouterr().err
    assert words in reported
    assert len(reported.splitlines()) == 1


def test_quotas_of_users_clients_and_addresses_are_changed_and_shown(
    configs: Configs, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ("--entity-type", "clients", "--entity-name", "c", "--entity-type", "users", "--entity-default")
    assert configs("--alter", *both, "--add-config", "producer_byte_rate=1024,request_percentage=12.5") == 0
    assert configs("--alter", "--user", "ann", "--add-config", "consumer_byte_rate=10485760") == 0
    assert configs("--alter", "--ip-defaults", "--add-config", "connection_creation_rate=5") == 0
    assert configs("--describe", *both) == 0
    assert configs("--describe", "--entity-type", "users") == 0
    assert configs("--describe", "--entity-type", "users", "--entity-type", "clients") == 0
    assert configs("--describe", "--ip-defaults") == 0
    assert configs("--alter", "--user", "ann", "--delete-config", "consumer_byte_rate") == 0
    assert configs("--describe", "--user", "ann") == 0
    of_both = (
        "Quota configs for the default user-principal, client-id 'c' are "
        "producer_byte_rate=1024.0, request_percentage=12.5"
    )
    assert capsys.readouterr().out.splitlines() == [
        "Completed updating config for client c.",
        "Completed updating config for user ann.",
        "Completed updating default config for ips in the cluster.",
        of_both,
        "Quota configs for user-principal 'ann' are consumer_byte_rate=1.048576E7",
        of_both,
        "Quota configs for the default ip are connection_creation_rate=5.0",
        "Completed updating config for user ann.",
    ]


@pytest.mark.parametrize("entity", [("--topic", "orders"), ("--broker", "1"), ("--broker-defaults",), ("--group", "g")])
def test_what_is_not_set_can_be_taken_away(
    configs: Configs, capsys: pytest.CaptureFixture[str], entity: tuple[str, ...]
) -> None:
    key = {"--topic": "flush.ms", "--group": "consumer.session.timeout.ms"}.get(entity[0], "log.retention.ms")
    assert configs("--alter", *entity, "--delete-config", key) == 0
    assert capsys.readouterr().out.startswith("Completed updating ")


def test_brackets_group_a_value_with_commas() -> None:
    assert parse_added("a=1, b=[x,y],c=") == {"a": "1", "b": "x,y", "c": ""}
    with pytest.raises(CommandError):
        parse_added("a=1=2")
