"""Settings of topics and brokers: changed while the server runs, described with their sources, in force at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import AGAINST_KAFKA, Server, Topic
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, produce, produced

pytestmark = pytest.mark.one_and_three

UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC = 17
UNSUPPORTED_VERSION = 35
INVALID_CONFIG = 40
INVALID_REQUEST = 42

KAFKAS_KEYS = Path(__file__).parents[1] / "unit" / "config" / "kafka-4.3.1-configs.tsv"
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = range(1, 6)

Change = tuple[str, int, str | None]


def resource(kind: int, name: str, *changes: Change) -> dict[str, Any]:
    """One resource of an IncrementalAlterConfigs request."""
    configs = [{"name": key, "config_operation": operation, "value": value} for key, operation, value in changes]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


def alter(wire: Wire, *resources: dict[str, Any], version: int = 1, validate_only: bool = False) -> list[Any]:
    """The outcomes of an IncrementalAlterConfigs request."""
    response = wire.call("IncrementalAlterConfigs", version, resources=list(resources), validate_only=validate_only)
    return list(response.responses)


def replace(wire: Wire, kind: int, name: str, version: int = 2, validate_only: bool = False, **configs: str) -> Any:
    """The outcome of an AlterConfigs request for one resource."""
    wanted = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    requested = [{"resource_type": kind, "resource_name": name, "configs": wanted}]
    (outcome,) = wire.call("AlterConfigs", version, resources=requested, validate_only=validate_only).responses
    return outcome


def describe(wire: Wire, kind: int, name: str, *keys: str, version: int = 4) -> dict[str, Any]:
    """The entries of a resource by name."""
    requested = [{"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}]
    (result,) = wire.call(
        "DescribeConfigs", version, resources=requested, include_synonyms=True, include_documentation=False
    ).results
    assert result.error_code == 0, result
    return {entry.name: entry for entry in result.configs}


def own(wire: Wire, topic: str) -> dict[str, str]:
    """What a topic sets itself."""
    entries = describe(wire, TOPIC, topic).values()
    return {entry.name: entry.value for entry in entries if entry.config_source == DYNAMIC_TOPIC}


def synonyms(entry: Any) -> list[tuple[str, str, int]]:
    return [(one.name, one.value, one.source) for one in entry.synonyms]


def completed(wire: Wire, topic: str, **configs: str) -> None:
    """Wait until a topic's own settings are these: Kafka's broker learns of them after the controller has answered."""
    wanted = {key.replace("_", "."): value for key, value in configs.items()}
    wait_until(lambda: own(wire, topic) == wanted, within=60, what=f"{topic} has {wanted}")


@pytest.fixture
def broker(server: Server, wire: Wire) -> Iterator[str]:
    """The id of the broker, whose own changes and those of all brokers are taken back afterwards."""
    own = str(server.brokers[0])
    yield own
    for name, source in ((own, DYNAMIC_BROKER), ("", DYNAMIC_DEFAULT)):
        entries = describe(wire, BROKER, name).values()
        # Kafka itself sets this one for all brokers, and keeps it (KIP-966).
        changed = [one.name for one in entries if one.config_source == source and one.name != "min.insync.replicas"]
        if changed:
            (outcome,) = alter(wire, resource(BROKER, name, *((key, DELETE, None) for key in changed)))
            assert outcome.error_code == 0, outcome


@pytest.mark.parametrize("version", [0, 1])
def test_every_version_sets_and_deletes(wire: Wire, create: Callable[..., Topic], version: int) -> None:
    topic = create(**{"retention.ms": "5", "segment.ms": "7"}).name
    changes: tuple[Change, ...] = (("retention.ms", SET, "6"), ("segment.ms", DELETE, None), ("flush.ms", SET, "8"))
    (outcome,) = alter(wire, resource(TOPIC, topic, *changes), version=version)
    assert (outcome.error_code, outcome.error_message) == (0, None)
    assert (outcome.resource_type, outcome.resource_name) == (TOPIC, topic)
    completed(wire, topic, retention_ms="6", flush_ms="8")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_old_way_replaces_all_of_a_topics_settings(wire: Wire, create: Callable[..., Topic], version: int) -> None:
    topic = create(**{"retention.ms": "5", "segment.ms": "7"}).name
    assert replace(wire, TOPIC, topic, version, flush_ms="8").error_code == 0
    completed(wire, topic, flush_ms="8")
    assert replace(wire, TOPIC, topic, version, validate_only=True).error_code == 0
    completed(wire, topic, flush_ms="8")
    assert replace(wire, TOPIC, topic, version).error_code == 0
    completed(wire, topic)


def test_lists_are_appended_to_and_subtracted_from(wire: Wire, topic: Topic) -> None:
    for operation, items, policy in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "delete,compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "compact", ""),
        (APPEND, "compact", "compact"),
    ):
        (outcome,) = alter(wire, resource(TOPIC, topic.name, ("cleanup.policy", operation, items)))
        assert outcome.error_code == 0, outcome
        completed(wire, topic.name, cleanup_policy=policy)


def test_an_item_that_a_list_has_twice_is_described_once(wire: Wire, topic: Topic, broker: str) -> None:
    (outcome,) = alter(wire, resource(BROKER, broker, ("log.cleanup.policy", SET, "compact,compact")))
    assert outcome.error_code == 0, outcome
    key = "follower.replication.throttled.replicas"
    (outcome,) = alter(
        wire, resource(TOPIC, topic.name, ("cleanup.policy", SET, "compact,compact"), (key, SET, "0:1,0:1"))
    )
    assert outcome.error_code == 0, outcome
    completed(wire, topic.name, cleanup_policy="compact", **{key: "0:1,0:1"})
    of_topic = lambda: describe(wire, TOPIC, topic.name)["cleanup.policy"]  # noqa: E731
    chain = [("log.cleanup.policy", "compact,compact", DYNAMIC_BROKER), ("log.cleanup.policy", "delete", DEFAULT)]
    own_first = [("cleanup.policy", "compact", DYNAMIC_TOPIC), *chain]
    wait_until(lambda: synonyms(of_topic()) == own_first, within=60, what="the topic inherits")
    of_broker = describe(wire, BROKER, broker)["log.cleanup.policy"]
    assert (of_broker.value, synonyms(of_broker)) == ("compact", chain)


TOPIC_KEYS = {row.split("\t")[1] for row in KAFKAS_KEYS.read_text().splitlines() if row.startswith("topic\t")}


def test_a_topics_description_has_kafkas_keys(wire: Wire, topic: Topic) -> None:
    assert set(describe(wire, TOPIC, topic.name)) == TOPIC_KEYS


@pytest.mark.skipif(AGAINST_KAFKA, reason="Kafka does not have the key")
def test_flush_is_described_where_the_topic_sets_it(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(flush="group").name
    entry = describe(wire, TOPIC, topic)["flush"]
    assert (entry.value, entry.config_source) == ("group", DYNAMIC_TOPIC)
    assert alter(wire, resource(TOPIC, topic, ("flush", DELETE, None)))[0].error_code == 0
    assert describe(wire, TOPIC, topic, "flush") == {}


def test_a_subtraction_begins_with_the_default(wire: Wire, topic: Topic) -> None:
    (outcome,) = alter(wire, resource(TOPIC, topic.name, ("cleanup.policy", SUBTRACT, "delete")))
    assert outcome.error_code == 0, outcome
    completed(wire, topic.name, cleanup_policy="")


WRONG: dict[str, tuple[Change, int, str]] = {
    "an item for what is no list": (
        ("retention.ms", APPEND, "5"),
        INVALID_CONFIG,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    ),
    "an item from what is no list": (
        ("retention.ms", SUBTRACT, "5"),
        INVALID_CONFIG,
        "Can't SUBTRACT to key retention.ms because its type is not LIST.",
    ),
    "a key that does not exist": (("colour", SET, "red"), INVALID_CONFIG, "Unknown topic config name: colour"),
    "a value that does not fit": (("retention.ms", SET, "soon"), INVALID_CONFIG, "retention.ms"),
    "a value out of range": (("retention.ms", SET, "-2"), INVALID_CONFIG, "retention.ms"),
    "a policy that there is not": (("cleanup.policy", APPEND, "burn"), INVALID_CONFIG, "cleanup.policy"),
    "a value that is null": (
        ("retention.ms", SET, None),
        INVALID_REQUEST,
        "Null value not supported for : retention.ms",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_change_is_refused_and_the_right_one_beside_it_is_made(
    wire: Wire, create: Callable[..., Topic], topic_name: str, what: str
) -> None:
    change, code, words = WRONG[what]
    first, second = create(topic_name + "-a").name, create(topic_name + "-b").name
    refused, made = alter(
        wire, resource(TOPIC, first, ("flush.ms", SET, "3"), change), resource(TOPIC, second, ("flush.ms", SET, "4"))
    )
    assert (refused.error_code, made.error_code) == (code, 0), refused
    assert words in refused.error_message
    completed(wire, second, flush_ms="4")
    assert own(wire, first) == {}


def test_a_list_does_not_grow_beyond_what_a_record_holds(wire: Wire, topic: Topic) -> None:
    key = "follower.replication.throttled.replicas"
    halves = [",".join(f"{number}:1" for number in some) for some in (range(4000), range(4000, 8000))]
    assert alter(wire, resource(TOPIC, topic.name, (key, APPEND, halves[0])))[0].error_code == 0
    (outcome,) = alter(wire, resource(TOPIC, topic.name, (key, APPEND, halves[1])))
    assert outcome.error_code == INVALID_CONFIG
    assert "exceeds the maximum value size of 32767 bytes" in outcome.error_message


def test_a_resource_or_a_key_named_twice_is_refused(wire: Wire, topic: Topic) -> None:
    one = resource(TOPIC, topic.name, ("flush.ms", SET, "3"))
    for outcome in alter(wire, one, one):
        assert outcome.error_code == INVALID_REQUEST
        assert outcome.error_message == "Each resource must appear at most once."
    (outcome,) = alter(wire, resource(TOPIC, topic.name, ("flush.ms", SET, "3"), ("flush.ms", DELETE, None)))
    assert (outcome.error_code, outcome.error_message) == (INVALID_REQUEST, "Error due to duplicate config keys")
    assert own(wire, topic.name) == {}


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("no-such-topic", UNKNOWN_TOPIC_OR_PARTITION, "The topic 'no-such-topic' does not exist."),
        ("", INVALID_REQUEST, "Default topic resources are not allowed."),
        ("a/b", INVALID_TOPIC, "a/b"),
    ],
)
def test_a_topic_that_is_not_there_is_reported(wire: Wire, name: str, code: int, words: str) -> None:
    (outcome,) = alter(wire, resource(TOPIC, name, ("flush.ms", SET, "3")))
    assert outcome.error_code == code
    assert words in outcome.error_message


def test_validate_only_changes_nothing(wire: Wire, topic: Topic) -> None:
    right, wrong = ("flush.ms", SET, "3"), ("flush.ms", SET, "soon")
    assert alter(wire, resource(TOPIC, topic.name, right), validate_only=True)[0].error_code == 0
    assert alter(wire, resource(TOPIC, topic.name, wrong), validate_only=True)[0].error_code == INVALID_CONFIG
    assert own(wire, topic.name) == {}


def test_a_topics_settings_are_in_force_at_once(wire: Wire, topic: Topic) -> None:
    batch = batch_of(b"x" * 200)
    assert produced(wire.query(produce(topic.name, batch))).error_code == 0
    assert alter(wire, resource(TOPIC, topic.name, ("max.message.bytes", SET, "100")))[0].error_code == 0
    too_large = lambda: produced(wire.query(produce(topic.name, batch))).error_code == MESSAGE_TOO_LARGE  # noqa: E731
    if AGAINST_KAFKA:
        wait_until(too_large, within=60, what="the limit is in force")
    assert too_large()
    stamped = ("message.timestamp.type", SET, "LogAppendTime")
    assert alter(wire, resource(TOPIC, topic.name, ("max.message.bytes", DELETE, None), stamped))[0].error_code == 0
    completed(wire, topic.name, message_timestamp_type="LogAppendTime")
    part = produced(wire.query(produce(topic.name, batch)))
    assert part.error_code == 0
    assert part.log_append_time_ms > 0


def test_sources_and_synonyms_show_where_a_value_comes_from(
    wire: Wire, create: Callable[..., Topic], broker: str
) -> None:
    topic = create(**{"max.message.bytes": "1000"}).name
    assert alter(wire, resource(BROKER, "", ("message.max.bytes", SET, "2000")))[0].error_code == 0
    assert alter(wire, resource(BROKER, broker, ("message.max.bytes", SET, "3000")))[0].error_code == 0
    chain = [
        ("message.max.bytes", "3000", DYNAMIC_BROKER),
        ("message.max.bytes", "2000", DYNAMIC_DEFAULT),
        ("message.max.bytes", "1048588", DEFAULT),
    ]
    of_broker = lambda: describe(wire, BROKER, broker, "message.max.bytes")["message.max.bytes"]  # noqa: E731
    wait_until(lambda: synonyms(of_broker()) == chain, within=60, what="the broker has the settings")
    assert (of_broker().value, of_broker().config_source, of_broker().read_only) == ("3000", DYNAMIC_BROKER, False)
    of_topic = describe(wire, TOPIC, topic, "max.message.bytes")["max.message.bytes"]
    assert (of_topic.value, of_topic.config_source) == ("1000", DYNAMIC_TOPIC)
    assert synonyms(of_topic) == [("max.message.bytes", "1000", DYNAMIC_TOPIC), *chain]
    of_all = describe(wire, BROKER, "")["message.max.bytes"]
    assert (of_all.value, of_all.config_source, of_all.read_only) == ("2000", DYNAMIC_DEFAULT, False)
    assert synonyms(of_all) == chain[1:2]


def test_a_chain_of_synonyms_begins_with_the_key_of_its_name(wire: Wire, topic: Topic, broker: str) -> None:
    inherited = describe(wire, TOPIC, topic.name, "retention.ms", "segment.bytes")
    assert (inherited["retention.ms"].value, inherited["retention.ms"].config_source) == ("604800000", DEFAULT)
    assert synonyms(inherited["retention.ms"]) == []
    assert synonyms(inherited["segment.bytes"]) == [("log.segment.bytes", "1073741824", DEFAULT)]
    assert synonyms(describe(wire, BROKER, broker, "log.retention.ms")["log.retention.ms"]) == []
    assert alter(wire, resource(BROKER, broker, ("log.retention.ms", SET, "77")))[0].error_code == 0
    chain = [("log.retention.ms", "77", DYNAMIC_BROKER), ("log.retention.hours", "168", DEFAULT)]
    of_topic = lambda: describe(wire, TOPIC, topic.name, "retention.ms")["retention.ms"]  # noqa: E731
    wait_until(lambda: synonyms(of_topic()) == chain, within=60, what="the topic inherits")
    assert (of_topic().value, of_topic().config_source) == ("77", DYNAMIC_BROKER)


def test_a_brokers_settings_are_in_force_in_every_log_that_inherits_them(
    wire: Wire, create: Callable[..., Topic], topic_name: str, broker: str
) -> None:
    inheriting = create(topic_name + "-a").name
    overriding = create(topic_name + "-b", **{"max.message.bytes": "1000"}).name
    batch = batch_of(b"x" * 200)
    code = lambda topic: produced(wire.query(produce(topic, batch))).error_code  # noqa: E731
    assert alter(wire, resource(BROKER, broker, ("message.max.bytes", SET, "100")))[0].error_code == 0
    wait_until(lambda: code(inheriting) == MESSAGE_TOO_LARGE, within=60, what="the limit is in force")
    assert code(overriding) == 0
    assert alter(wire, resource(BROKER, broker, ("message.max.bytes", DELETE, None)))[0].error_code == 0
    wait_until(lambda: code(inheriting) == 0, within=60, what="the limit is gone")


BROKER_FAULTS: list[tuple[str | None, Change, str]] = [
    (None, ("log.dirs", SET, "/x"), "Cannot update these configs dynamically: [log.dirs]"),
    (None, ("log.retention.ms", SET, "soon"), "log.retention.ms"),
    (None, ("log.segment.bytes", SET, "1"), "log.segment.bytes"),
    (None, ("num.io.threads", SET, "100"), "value should not be greater than double the current value 8"),
    ("99", ("log.retention.ms", SET, "1"), "Unexpected broker id, expected 1, but received 99"),
    ("one", ("log.retention.ms", SET, "1"), "Node id must be an integer, but it is: one"),
    ("9" * 5000, ("log.retention.ms", SET, "1"), "Node id must be an integer, but it is: 9"),
    (
        "",
        ("listeners", SET, "PLAINTEXT://:1"),
        "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
    ),
]


@pytest.mark.parametrize(("name", "change", "words"), BROKER_FAULTS, ids=[fault[1][0] for fault in BROKER_FAULTS])
def test_what_cannot_be_changed_of_a_broker_is_refused(
    wire: Wire, broker: str, name: str | None, change: Change, words: str
) -> None:
    (outcome,) = alter(wire, resource(BROKER, broker if name is None else name, change))
    assert outcome.error_code == INVALID_REQUEST
    assert words in outcome.error_message


def test_a_key_of_a_part_that_is_not_there_is_taken_and_described(wire: Wire, broker: str) -> None:
    secret, prefixed = "listener.name.plaintext.ssl.key.password", "listener.name.plaintext.ssl.keystore.location"
    changes = {"sasl.kerberos.service.name": "kafka", "ssl.client.auth": "required", secret: "hunter2", prefixed: "/x"}
    (outcome,) = alter(wire, resource(BROKER, broker, *((name, SET, value) for name, value in changes.items())))
    assert (outcome.error_code, outcome.error_message) == (0, None)

    def described() -> dict[str, tuple[Any, bool]]:
        entries = describe(wire, BROKER, broker).items()
        return {name: (one.config_source, one.is_sensitive) for name, one in entries if name in changes}

    wait_until(
        lambda: described().get("ssl.client.auth") == (DYNAMIC_BROKER, False), within=60, what="they are in force"
    )
    assert {source for source, _ in described().values()} == {DYNAMIC_BROKER}
    assert {name for name, (_, is_sensitive) in described().items() if is_sensitive} <= {secret}
    entries = describe(wire, BROKER, broker)
    assert "hunter2" not in str(entries)
    (outcome,) = alter(wire, resource(BROKER, "", ("sasl.kerberos.service.name", SET, "kafka")))
    assert outcome.error_code == INVALID_REQUEST
    assert "broker id must be specified: [sasl.kerberos.service.name]" in outcome.error_message


CUSTOM = ("cleanup.policy", "my.custom")


@pytest.mark.parametrize("of_all", [False, True], ids=["of one broker", "of all brokers"])
def test_keys_that_no_broker_knows_are_kept_and_described_without_values(wire: Wire, broker: str, of_all: bool) -> None:
    name, source = ("", DYNAMIC_DEFAULT) if of_all else (broker, DYNAMIC_BROKER)

    def described() -> dict[str, tuple[Any, ...]]:
        entries = describe(wire, BROKER, name).items()
        return {
            key: (one.value, one.config_source, one.read_only, one.is_sensitive, one.config_type, synonyms(one))
            for key, one in entries
            if key in CUSTOM
        }

    changes = [(key, SET, "compact") for key in CUSTOM]
    assert alter(wire, resource(BROKER, name, *changes), validate_only=True)[0].error_code == 0
    assert described() == {}
    (outcome,) = alter(wire, resource(BROKER, name, *changes))
    assert (outcome.error_code, outcome.error_message) == (0, None)
    kept = {key: (None, source, True, True, 0, [(key, None, source)]) for key in CUSTOM}
    wait_until(lambda: described() == kept, within=60, what="they are described")
    (outcome,) = alter(wire, resource(BROKER, name, ("my.custom", SET, "2"), ("log.dirs", SET, "/x")))
    assert outcome.error_code == INVALID_REQUEST
    (outcome,) = alter(wire, resource(BROKER, name, ("my.custom", APPEND, "2")))
    assert outcome.error_code == INVALID_CONFIG
    assert alter(wire, resource(BROKER, name, ("my.custom", DELETE, None)))[0].error_code == 0
    wait_until(lambda: list(described()) == ["cleanup.policy"], within=60, what="one is deleted")


def test_keys_that_no_broker_knows_are_kept_by_alter_configs(wire: Wire, broker: str) -> None:
    assert replace(wire, BROKER, broker, my_custom="5").error_code == 0
    wait_until(lambda: "my.custom" in describe(wire, BROKER, broker), within=60, what="it is described")


def test_a_brokers_settings_are_replaced_in_the_old_way(wire: Wire, broker: str) -> None:
    assert replace(wire, BROKER, broker, log_retention_ms="5").error_code == 0
    assert replace(wire, BROKER, broker, message_max_bytes="600").error_code == 0

    def changed() -> list[str]:
        return [
            entry.name for entry in describe(wire, BROKER, broker).values() if entry.config_source == DYNAMIC_BROKER
        ]

    wait_until(lambda: changed() == ["message.max.bytes"], within=60, what="one change is left")


def test_resources_that_have_settings_are_listed(wire: Wire, topic: Topic, broker: str) -> None:
    def listed(version: int, *types: int) -> Any:
        requested = {"resource_types": list(types)} if version else {}
        return wire.call("ListConfigResources", version, **requested)

    everything = {(one.resource_type, one.resource_name) for one in listed(1).config_resources}
    assert {(TOPIC, topic.name), (BROKER, broker), (LOGGER, broker)} <= everything
    brokers = [(one.resource_type, one.resource_name) for one in listed(1, BROKER).config_resources]
    assert (BROKER, broker) in brokers
    assert list(listed(0).config_resources) == []
    assert list(listed(1, CLIENT_METRICS).config_resources) == []
    assert {one.resource_type for one in listed(1, CLIENT_METRICS, GROUP).config_resources} <= {GROUP}
    assert listed(1, 7).error_code == UNSUPPORTED_VERSION


def test_the_admin_of_confluent_kafka_changes_settings(server: Server, wire: Wire, topic: Topic) -> None:
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    admin = AdminClient({"bootstrap.servers": server.bootstrap_servers})
    named = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic.name,
        incremental_configs=[
            ConfigEntry("retention.ms", "7", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
        ],
    )
    for outcome in admin.incremental_alter_configs([named]).values():
        outcome.result(60)
    completed(wire, topic.name, retention_ms="7", cleanup_policy="delete,compact")
    (described,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic.name)]).values()
    assert described.result(60)["retention.ms"].value == "7"


def test_the_admin_of_kafka_python_changes_settings(server: Server, wire: Wire, topic: Topic) -> None:
    from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=server.bootstrap_servers)
    try:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic.name, {"flush.ms": "9"})])
    finally:
        admin.close()
    completed(wire, topic.name, flush_ms="9")
    assert own(wire, topic.name) == {"flush.ms": "9"}
