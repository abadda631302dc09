from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.connections import MAX
from pybroker.config.dynamic import AT_START, PER_BROKER, build_dynamic, dynamic_fault

STATIC = BrokerConfig({"log.retention.hours": "2", "log.segment.bytes": "2097152"})
STEPS = "Dynamic thread count update validation failed for"
THREADS = f"{STEPS} num.io.threads"


def fault(configs: dict[str, str], *, is_own: bool = True, current: BrokerConfig = STATIC) -> str | None:
    return dynamic_fault(STATIC, current, configs, is_own=is_own)


def test_a_brokers_own_change_stands_over_that_of_all_and_both_over_the_file() -> None:
    made, ignored = build_dynamic(
        STATIC, {"log.segment.bytes": "3145728", "message.max.bytes": "5"}, {"log.segment.bytes": "4194304"}
    )
    assert (made.log_segment_bytes, made.message_max_bytes, ignored) == (4194304, 5, ())
    assert (STATIC.log_segment_bytes, made.given) == (2097152, STATIC.given)
    assert made.dynamic_own == {"log.segment.bytes": "4194304"}
    assert made.dynamic_default == {"log.segment.bytes": "3145728", "message.max.bytes": "5"}


def test_a_change_in_ms_stands_over_hours_in_the_file() -> None:
    assert STATIC.retention_ms == 7_200_000
    assert build_dynamic(STATIC, {}, {"log.retention.ms": "5"}).config.retention_ms == 5


def test_a_stored_change_that_is_not_understood_is_left_out_and_reported() -> None:
    made, ignored = build_dynamic(
        STATIC, {"node.id": "1", "listeners": "X"}, {"message.max.bytes": "many", "log.retention.ms": "5"}
    )
    assert made.dynamic_own == {"log.retention.ms": "5"}
    assert made.dynamic_default == {}
    assert len(ignored) == 3


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ({"log.dirs": "/x"}, "Cannot update these configs dynamically: [log.dirs]"),
        ({"log.dirs": "/x", "node.id": "3"}, "Cannot update these configs dynamically: [log.dirs, node.id]"),
        (
            {"log.retention.ms": "soon"},
            "log.retention.ms=soon: expected a whole number from -9223372036854775808 to 9223372036854775807",
        ),
        ({"log.segment.bytes": "1"}, "log.segment.bytes=1: expected a whole number from 1048576 to 2147483647"),
        (
            {"num.network.threads": "7"},
            f"{STEPS} num.network.threads=7, value should not be greater than double the current value 3",
        ),
        ({"num.network.threads": "65"}, "num.network.threads=65: expected a whole number from 1 to 64"),
        (
            {"num.recovery.threads.per.data.dir": "5"},
            f"{STEPS} num.recovery.threads.per.data.dir=5, value should not be greater than double the current value 2",
        ),
        (
            {"log.cleaner.threads": "3"},
            "Log cleaner threads cannot be increased to more than double the current value 1",
        ),
        (
            {"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "5"},
            "log.cleaner.min.compaction.lag.ms=10: expected at most log.cleaner.max.compaction.lag.ms, which is 5",
        ),
        (
            {"log.cleaner.dedupe.buffer.size": "2097153", "log.cleaner.threads": "2"},
            "log.cleaner.dedupe.buffer.size=2097153: expected more than 1048576 for each of 2 log.cleaner.threads",
        ),
        ({"log.cleaner.threads": "0"}, "log.cleaner.threads=0: expected a whole number from 1 to 2147483647"),
        (
            {"num.io.threads": "17"},
            f"{THREADS}=17, value should not be greater than double the current value 8",
        ),
        (
            {"num.io.threads": "3"},
            f"{THREADS}=3, value should be at least half the current value 8",
        ),
    ],
)
def test_what_is_wrong_is_said(configs: dict[str, str], words: str) -> None:
    assert fault(configs) == words
    assert fault(configs, is_own=False) == words


def test_custom_keys_of_a_broker_are_kept_beside_those_in_force() -> None:
    own = {"my.custom": "a", "cleanup.policy": "compact", "listener.name.outer.no.such": "b"}
    assert fault(own) is None
    assert fault({"my.custom": "c"}, is_own=False) is None
    made, ignored = build_dynamic(STATIC, {"my.custom": "c"}, {**own, "message.max.bytes": "5"})
    assert (made.custom_default, made.custom_own, ignored) == ({"my.custom": "c"}, own, ())
    assert (made.dynamic_own, made.message_max_bytes) == ({"message.max.bytes": "5"}, 5)


def test_a_custom_key_hides_no_fault_beside_it() -> None:
    assert fault({"my.custom": "a", "log.dirs": "/x"}) == "Cannot update these configs dynamically: [log.dirs]"
    assert "log.retention.ms=soon" in (fault({"my.custom": "a", "log.retention.ms": "soon"}) or "")


def test_a_custom_key_of_one_listener_is_rejected_for_all_brokers() -> None:
    words = "Cannot update these configs at default cluster level, broker id must be specified: "
    assert fault({"listener.name.outer.no.such": "b"}, is_own=False) == f"{words}[listener.name.outer.no.such]"


def test_a_number_of_threads_may_be_halved_and_doubled_the_half_rounded_down() -> None:
    for count in ("1", "2", "6"):
        assert fault({"num.network.threads": count}) is None
    current = build_dynamic(STATIC, {"log.cleaner.threads": "5", "num.network.threads": "6"}, {}).config
    assert fault({"log.cleaner.threads": "2", "num.network.threads": "12"}, current=current) is None
    words = "Log cleaner threads cannot be reduced to less than half the current value 5"
    assert fault({"log.cleaner.threads": "1"}, current=current, is_own=False) == words
    assert "at least half the current value 6" in (fault({"num.network.threads": "2"}, current=current) or "")


def test_what_is_right_is_taken() -> None:
    for configs in ({}, {"log.retention.ms": "-1"}, {"num.io.threads": "16", "log.cleanup.policy": "compact,delete"}):
        assert fault(configs) is None
        assert fault(configs, is_own=False) is None


def test_listeners_are_each_brokers_own() -> None:
    words = "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
    assert fault({"listeners": "PLAINTEXT://:1"}, is_own=False) == words


def test_the_changes_of_all_count_when_a_broker_changes_its_own() -> None:
    current = build_dynamic(STATIC, {"log.cleaner.max.compaction.lag.ms": "5"}, {}).config
    assert "which is 5" in (fault({"log.cleaner.min.compaction.lag.ms": "6"}, current=current) or "")
    assert fault({"log.cleaner.min.compaction.lag.ms": "6"}) is None


def test_the_lists_name_keys_that_kafka_lets_change() -> None:
    assert all(BrokerConfig.keys[name].dynamic for name in PER_BROKER | AT_START)


@pytest.mark.parametrize(
    "conflicting", [{"log.cleaner.threads": "200"}, {"log.cleaner.dedupe.buffer.size": "1"}, {"log.retention.ms": "0"}]
)
def test_a_stored_change_that_contradicts_the_rest_is_left_out_and_reported(conflicting: dict[str, str]) -> None:
    made, ignored = build_dynamic(STATIC, {"message.max.bytes": "5", **conflicting}, {"log.segment.bytes": "4194304"})
    assert made.dynamic_default == {"message.max.bytes": "5"}
    assert made.dynamic_own == {"log.segment.bytes": "4194304"}
    assert (made.log_cleaner_threads, made.log_cleaner_dedupe_buffer_size) == (1, 128 * 1024**2)
    assert len(ignored) == 1


def test_of_stored_changes_that_contradict_each_other_manifold_the_sound_ones_are_in_force() -> None:
    default = {"log.retention.ms": "0", "message.max.bytes": "5", "log.cleaner.io.buffer.size": "524289"}
    made, ignored = build_dynamic(STATIC, default, {"log.cleaner.dedupe.buffer.size": "1", "background.threads": "9"})
    assert made.dynamic_default == {"message.max.bytes": "5", "log.cleaner.io.buffer.size": "524289"}
    assert (made.dynamic_own, len(ignored)) == ({"background.threads": "9"}, 1)


@pytest.mark.parametrize("kind", [ValueError, OverflowError])
def test_a_stored_change_that_no_settings_can_be_made_of_is_left_out_and_the_others_hold(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    check = BrokerConfig._check_retention

    def fail(config: BrokerConfig) -> None:
        if config.sasl_jaas_config is not None:
            raise kind(f"invalid literal: {config.sasl_jaas_config}")
        check(config)

    monkeypatch.setattr(BrokerConfig, "_check_retention", fail)
    own = {"sasl.jaas.config": "hunter2", "message.max.bytes": "5"}
    made, ignored = build_dynamic(STATIC, {"log.segment.bytes": "4194304"}, own)
    assert (made.dynamic_default, made.dynamic_own) == ({"log.segment.bytes": "4194304"}, {"message.max.bytes": "5"})
    (words,) = ignored
    assert f"sasl.jaas.config ({kind.__name__})" in words
    assert "hunter2" not in words
    assert fault(own) == f"cannot apply the changes of {', '.join(sorted(own))} ({kind.__name__})"


def test_a_stored_text_that_no_value_can_be_made_of_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_name: str, _text: str) -> int:
        raise OverflowError

    monkeypatch.setattr("pybroker.config.dynamic.listener_limit", fail)
    name = f"listener.name.plaintext.{MAX}"
    made, ignored = build_dynamic(STATIC, {}, {name: "7", "message.max.bytes": "5"})
    assert made.dynamic_own == {"message.max.bytes": "5"}
    assert ignored == (f"{name}=7: the value cannot be parsed (OverflowError)",)
