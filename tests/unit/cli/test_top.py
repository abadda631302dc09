from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
from rich.console import Console

from pybroker.cli.errors import CommandError
from pybroker.cli.main import main
from pybroker.cli.top import JSON
from pybroker.cli.top.sampling import Sample
from pybroker.cli.top.screen import show_live
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.producing.producer import Producer
from pybroker.testing import Broker
from tests.support.json_shapes import shape_fault


@pytest.fixture(scope="module")
def at() -> Iterator[list[str]]:
    """The options that name a broker with a topic and a group."""
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics(["orders"])
        with Producer(broker.bootstrap_servers) as producer:
            for _ in range(5):
                producer.send("orders", b"one").result()
        admin.alter_group_offsets("readers", {TopicPartition("orders", 0): 2})
        yield ["--bootstrap-server", broker.bootstrap_servers, "--interval", "0.001"]


def test_one_look_is_a_table_or_a_document(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", *at, "--once"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert lines[0][:4] == ["1", "brokers,", "1", "topics,"]
    assert ["readers", "Empty", "1", "0", "3", "-"] in lines
    assert main(["top", *at, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert shape_fault(document, JSON[""]) is None
    assert [(one["topic"], one["records"]) for one in document["topics"]] == [("orders", 5)]


def test_the_live_view_is_for_terminals(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", *at]) == 2
    assert "the live view needs a terminal: use --once or --json" in capsys.readouterr().err
    assert main(["top", *at, "--rows", "0"]) == 2


def test_the_live_view_shows_the_cluster_until_it_is_interrupted() -> None:
    partition = TopicPartition("orders", 0)
    samples = iter([Sample(float(second), 1, {partition: 1}, {partition: second * 7}, 0, {}, 0) for second in (1, 2)])

    def take() -> Sample:
        try:
            return next(samples)
        except StopIteration:
            raise KeyboardInterrupt from None

    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120, color_system=None)
    with pytest.raises(KeyboardInterrupt):
        show_live(take, interval_s=0.001, rows=5, title="here", console=console)
    assert "here: 1 brokers, 1 topics, 1 partitions, 7.0 records/s over 1.0 s" in screen.getvalue()
    with pytest.raises(CommandError, match="needs a terminal"):
        show_live(take, interval_s=1, rows=5, title="", console=Console(file=io.StringIO()))
