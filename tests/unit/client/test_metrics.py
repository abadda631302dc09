"""A consumer's own sensors, and full names as Kafka has them."""

from __future__ import annotations

from pybroker.client import TopicPartition
from pybroker.client.metrics import GroupSensors, Sensor, build_lags, consumer_values, producer_values
from pybroker.client.settings import ConsumerSettings


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_rate_is_that_of_the_readings_that_are_kept() -> None:
    time = Time()
    sensor = Sensor(10.0, 2, time)
    for at, seconds in ((101.0, 0.5), (112.0, 1.5), (130.0, 1.0)):
        time.now = at
        sensor.record(seconds)
    assert (sensor.count, sensor.mean_ms, sensor.longest_s) == (3, 1000.0, 1.5)
    assert sensor.rate == (3 - 1) / (130.0 - 112.0), "since the reading at 112, before which there was one"
    time.now = 135.0
    assert sensor.ago_s == 5.0


def test_a_rebalance_lasts_from_its_first_sign_to_the_partitions() -> None:
    time = Time()
    sensors = GroupSensors(ConsumerSettings.of_client("localhost:1", {"group.id": "g"}), time)
    assert sensors.metrics()["last-rebalance-seconds-ago"] == -1.0
    sensors.begin_rebalance()
    time.now += 1
    sensors.begin_rebalance()
    time.now += 2
    sensors.end_rebalance()
    sensors.end_rebalance()
    found = sensors.metrics()
    assert (found["rebalance-total"], found["rebalance-latency-avg"]) == (1.0, 3000.0)


def test_names_have_kafkas_groups_and_tags() -> None:
    of_partitions = build_lags([("t", 3, 7)])
    assert of_partitions == {TopicPartition("t", 3): {"records-lag": 7.0}}
    metrics = {"request-total": 1.0, "fetch-rate": 2.0, "records-lag-max": 7.0, "commit-rate": 3.0}
    values = consumer_values(metrics, of_partitions, "c")
    assert [(one.group, one.name) for one in values] == [
        ("consumer-metrics", "request-total"),
        ("consumer-fetch-manager-metrics", "fetch-rate"),
        ("consumer-fetch-manager-metrics", "records-lag-max"),
        ("consumer-coordinator-metrics", "commit-rate"),
        ("consumer-fetch-manager-metrics", "records-lag"),
    ]
    assert values[-1].tags == {"client-id": "c", "topic": "t", "partition": "3"}
    assert [(one.group, one.tags) for one in producer_values({"x": 1.0}, "p")] == [
        ("producer-metrics", {"client-id": "p"})
    ]
