"""What a client is asked for: the sum of the subscriptions that match it, under an id of its own."""

from __future__ import annotations

from pybroker.telemetry.client import Client
from pybroker.telemetry.subscriptions import Subscription, build_requested

CLIENT = Client(bytes(range(16)), "app", "librdkafka", "2.16.0", "10.0.0.1", 4711, "User:ANONYMOUS")
ALL = Subscription.parse({"metrics": "*", "interval.ms": "1000"})
SOME = Subscription.parse({"metrics": "a.,b.", "interval.ms": "500", "match": "client_id=app,client_source_port=47.*"})
OTHERS = Subscription.parse({"metrics": "c.", "interval.ms": "100", "match": "client_software_name=other"})
SLOW = Subscription.parse({"metrics": "d.", "interval.ms": "3600000"})


def test_what_is_asked_is_the_sum_at_the_shortest_interval() -> None:
    requested = build_requested(CLIENT, [SOME, OTHERS, SLOW])
    assert (requested.metrics, requested.interval_ms) == (("a.", "b.", "d."), 500)
    assert build_requested(CLIENT, [SLOW]).interval_ms == 300_000, "as Kafka's: never beyond the default"
    assert build_requested(CLIENT, [SOME, ALL]).metrics == ("*",)
    assert build_requested(CLIENT, [OTHERS])[1:] == ((), 300_000)


def test_what_a_client_does_not_say_matches_no_pattern() -> None:
    anything = Subscription.parse({"metrics": "*", "match": "client_software_name=.*"})
    assert build_requested(CLIENT, [anything]).metrics == ("*",)
    assert build_requested(CLIENT._replace(software_name=""), [anything]).metrics == ()


def test_another_question_and_another_client_have_another_id() -> None:
    ids = {
        build_requested(client, subscriptions).subscription_id
        for client in (CLIENT, CLIENT._replace(instance_id=bytes(15) + b"\2"))
        for subscriptions in ([], [SOME], [ALL], [SLOW])
    }
    assert len(ids) == 8
    assert all(-(2**31) <= one < 2**31 for one in ids)
    assert build_requested(CLIENT, [SOME, SLOW]) == build_requested(CLIENT, [SLOW, SOME]), "every broker finds the same"


def test_an_instance_is_written_as_kafka_writes_it() -> None:
    assert CLIENT.uuid == "AAECAwQFBgcICQoLDA0ODw"
