from __future__ import annotations

import msgspec
import pytest

from pybroker.broker.live_config import LiveConfig
from pybroker.config.broker import BrokerConfig
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import (
    BROKER_RESOURCE,
    EMPTY_IMAGE,
    TOPIC_RESOURCE,
    ConfigResource,
    ConfigsImage,
    MetadataImage,
)


def image(default: dict[str, str], own: dict[str, str], other: dict[str, str] | None = None) -> MetadataImage:
    resources = {"": default, "1": own, "2": other or {}}
    configs = {ConfigResource(BROKER_RESOURCE, name): values for name, values in resources.items() if values}
    return msgspec.structs.replace(EMPTY_IMAGE, configs=ConfigsImage(by_resource=configs))


class Stage:
    """Settings that follow images, and those that the callback received."""

    def __init__(self) -> None:
        self.received: list[BrokerConfig] = []
        self.live = LiveConfig(BrokerConfig({"message.max.bytes": "10"}))
        self.live.subscribe(self.received.append)

    def publish(self, now: MetadataImage) -> None:
        self.live.publish(MetadataDelta(EMPTY_IMAGE), now)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_changes_are_reported_once_and_taken_back(stage: Stage) -> None:
    stage.publish(image({"message.max.bytes": "20"}, {}))
    stage.publish(image({"message.max.bytes": "20"}, {}))
    stage.publish(image({"message.max.bytes": "20"}, {"message.max.bytes": "30"}))
    stage.publish(image({}, {}))
    assert [config.message_max_bytes for config in stage.received] == [20, 30, 10]
    assert stage.live.current is stage.received[-1]


def test_what_another_broker_has_is_not_taken(stage: Stage) -> None:
    stage.publish(image({}, {}, {"message.max.bytes": "30"}))
    assert stage.received == []


def test_a_stored_change_that_is_not_understood_is_reported_in_the_log(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.publish(image({"log.retention.ms": "soon"}, {"message.max.bytes": "30"}))
    assert "log.retention.ms=soon: expected a whole number" in caplog.text
    assert stage.live.current.message_max_bytes == 30


def test_custom_keys_are_logged_once_with_the_nearest_known_key_and_without_values(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pybroker.broker")
    own = {"cleanup.policy": "hunter2", "log.retension.ms": "5", "my.custom": "hunter2"}
    stage.publish(image({"my.custom": "hunter2"}, own))
    stage.publish(image({"my.custom": "hunter3"}, own))
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warning == (
        "Keeping unknown broker configurations, which have no effect: cleanup.policy (is log.cleanup.policy meant?), "
        "log.retension.ms (is log.retention.ms meant?), my.custom"
    )
    assert "hunter" not in caplog.text


def test_the_default_of_all_is_judged_with_the_brokers_own_changes(stage: Stage) -> None:
    stage.publish(image({}, {"log.cleaner.max.compaction.lag.ms": "5"}))
    lag = {"log.cleaner.min.compaction.lag.ms": "6"}
    assert stage.live.broker_fault(lag, broker=None) is not None
    assert stage.live.broker_fault(lag, broker=1) is None, "the changes judged replace the broker's own"


def test_a_broker_elsewhere_is_not_judged_by_what_this_one_has(stage: Stage) -> None:
    threads = {"num.replica.fetchers": "8"}
    assert "should not be greater than double" in (stage.live.broker_fault(threads, broker=1) or "")
    assert stage.live.broker_fault(threads, broker=2) is None
    bad = {"num.replica.fetchers": "many"}
    assert stage.live.broker_fault(bad, broker=2) is not None
    lag = {"log.cleaner.min.compaction.lag.ms": "6", "log.cleaner.max.compaction.lag.ms": "5"}
    assert stage.live.broker_fault(lag, broker=1) is not None


def test_lists_begin_with_what_is_inherited(stage: Stage) -> None:
    assert stage.live.list_inherited(TOPIC_RESOURCE, "cleanup.policy") == ("delete",)
    assert stage.live.list_inherited(TOPIC_RESOURCE, "retention.ms") is None
    assert stage.live.list_inherited(TOPIC_RESOURCE, "colour") is None
    assert stage.live.list_inherited(BROKER_RESOURCE, "log.cleanup.policy") == ("delete",)
    stage.publish(image({"log.cleanup.policy": "compact"}, {}))
    assert stage.live.list_inherited(TOPIC_RESOURCE, "cleanup.policy") == ("compact",)


def test_a_secret_is_not_written_into_the_log(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "pybroker.broker")
    prefixed = "listener.name.internal.scram-sha-256.sasl.jaas.config"
    stage.publish(image({"sasl.jaas.config": "hunter2"}, {prefixed: "hunter2", "ssl.protocol": "TLSv1.3"}))
    assert "ssl.protocol" in caplog.text
    assert prefixed in caplog.text
    assert "hunter2" not in caplog.text


def test_nobody_is_called_after_the_end(stage: Stage) -> None:
    stage.live.stop()
    stage.publish(image({"message.max.bytes": "20"}, {}))
    assert stage.received == []
    assert stage.live.current.message_max_bytes == 20


def test_what_is_wrong_with_a_topics_or_a_groups_own_settings_is_said(stage: Stage) -> None:
    assert stage.live.topic_fault({"retention.ms": "5"}) is None
    # What an image has of a topic is no reason to elect nobody, whether it would be taken today or not.
    old = {"remote.storage.enable": "true", "min.insync.replicas": "2", "unclean.leader.election.enable": "true"}
    assert stage.live.min_insync_replicas(old) == 2
    assert stage.live.elects_uncleanly(old)
    assert "retention.ms" in (stage.live.topic_fault({"retention.ms": "soon"}) or "")
    assert stage.live.group_fault({"consumer.session.timeout.ms": "45000"}) is None
    assert "colour" in (stage.live.group_fault({"colour": "red"}) or "")


def test_a_file_that_is_read_again_changes_what_may_change(stage: Stage) -> None:
    stage.publish(image({"log.cleaner.threads": "2"}, {}))
    given = {"num.network.threads": "5", "socket.listen.backlog.size": "7", "log.cleaner.threads": "1"}
    read = BrokerConfig({"message.max.bytes": "40", **given})
    assert stage.live.reread(read) == (
        ("log.cleaner.threads", "message.max.bytes", "num.network.threads"),
        ("socket.listen.backlog.size",),
    )
    current = stage.received[-1]
    assert (current.message_max_bytes, current.num_network_threads, current.socket_listen_backlog_size) == (40, 5, 50)
    assert current.log_cleaner_threads == 2, "what the metadata holds stands over the file"
    assert stage.live.reread(read).taken == ()
    assert stage.live.reread(BrokerConfig({})).taken == (
        "log.cleaner.threads",
        "message.max.bytes",
        "num.network.threads",
    )
    assert stage.live.current.message_max_bytes == BrokerConfig.message_max_bytes.default


def test_stored_listeners_that_a_start_with_others_cannot_have_are_left_out_and_can_be_taken_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    live = LiveConfig(BrokerConfig({"listeners": "PLAINTEXT://127.0.0.1:9000"}))
    live.publish(
        MetadataDelta(EMPTY_IMAGE), image({}, {"listeners": "PLAINTEXT://127.0.0.1:0", "background.threads": "5"})
    )
    assert [one.endpoint.port for one in live.current.broker_endpoints] == [9000]
    assert live.current.background_threads == 5
    assert (
        "Ignoring a stored broker configuration: Configs cannot be updated dynamically for existing listener"
        in caplog.text
    )
    assert live.broker_fault({"background.threads": "5"}, broker=1) is None
    file = {"listeners": "PLAINTEXT://127.0.0.1:9000", "message.max.bytes": "20"}
    assert live.reread(BrokerConfig(file)).taken == ("message.max.bytes",)
    assert [one.endpoint.port for one in live.current.broker_endpoints] == [9000]
    caplog.clear()
    live.publish(MetadataDelta(EMPTY_IMAGE), image({}, {"background.threads": "6"}))
    assert live.current.background_threads == 6
    assert "Ignoring" not in caplog.text


def test_a_subscriber_that_fails_keeps_no_other_from_a_change(caplog: pytest.LogCaptureFixture) -> None:
    received: list[BrokerConfig] = []

    def fails(_: BrokerConfig) -> None:
        raise ValueError("embedded null byte")

    live = LiveConfig(BrokerConfig({}))
    live.subscribe(fails)
    live.subscribe(received.append)
    live.publish(MetadataDelta(EMPTY_IMAGE), image({"message.max.bytes": "20"}, {}))
    assert [config.message_max_bytes for config in received] == [20]
    assert live.reread(BrokerConfig({"log.cleaner.threads": "2"})).taken == ("log.cleaner.threads",)
    assert received[-1].log_cleaner_threads == 2
    criticals = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert len(criticals) == 2
    assert all("fails" in one.getMessage() and one.exc_info is not None for one in criticals)
