"""A store is restored up to the end of its changelog, also while a transaction of the previous owner is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybroker.client import Producer
from pybroker.streams import INT64, STRING, KafkaStreams, RestoreProgress, StreamsBuilder
from pybroker.streams.topology.topology import Topology
from tests.conformance.conftest import serving
from tests.support.conditions import wait_until
from tests.support.streams_application import create_topics

pytestmark = pytest.mark.xdist_group("stream applications")

CHANGELOG = "app-counts-changelog"


def counts() -> Topology:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key_serde=STRING, value_serde=STRING).group_by_key()
    grouped.count(store="counts").to_stream().to("out", key_serde=STRING, value_serde=INT64)
    return builder.build()


def test_a_restored_store_contains_a_transaction_that_commits_later(tmp_path: Path) -> None:
    with serving({"group.streams.initial.rebalance.delay.ms": "0"}) as brokers:
        servers = brokers.bootstrap_servers
        create_topics(servers, ["in", "out"])
        settings: dict[str, Any] = {
            "application.id": "app",
            "bootstrap.servers": servers,
            "processing.guarantee": "exactly_once_v2",
        }
        with KafkaStreams(counts(), settings | {"state.dir": tmp_path / "previous"}) as previous:
            previous.start()
            previous.wait_until_running()
        with Producer(servers, {"transactional.id": "previous owner"}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(CHANGELOG, (7).to_bytes(8, "big"), b"a")
            producer.flush()
            progress: list[RestoreProgress] = []
            with KafkaStreams(counts(), settings | {"state.dir": tmp_path / "next"}) as app:
                app.set_restore_listener(progress.append)
                app.start()
                wait_until(lambda: progress, within=60, what="the restoration begins")
                producer.commit_transaction()
                app.wait_until_running()
                assert app.store("counts").get("a") == 7
