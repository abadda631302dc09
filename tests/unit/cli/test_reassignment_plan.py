from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.main import main
from pybroker.cli.reassignment_plan import parse_broker_list, parse_topics, propose
from pybroker.cli.reassignment_throttles import moves, topic_throttles
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import BROKER, TOPIC, NewTopic, Reassignment, TopicPartition
from pybroker.testing import Broker

ORDERS = [TopicPartition("orders", index) for index in range(6)]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Broker() as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2)])
        yield broker.bootstrap_servers


def test_a_proposal_spreads_replicas_over_brokers_and_racks() -> None:
    standing = dict.fromkeys(ORDERS, (9, 8))
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b"}
    proposed = propose(standing, racks, 0)
    assert list(proposed) == ORDERS
    assert all(len({racks[broker] for broker in replicas}) == 2 for replicas in proposed.values())
    assert Counter(replicas[0] for replicas in proposed.values()) == {1: 2, 2: 2, 3: 2}


@pytest.mark.parametrize(
    ("racks", "words"),
    [
        ({1: "a", 2: None}, "Not all brokers have rack information. Add --disable-rack-aware"),
        ({1: None}, "Replication factor: 2 larger than available brokers: 1."),
    ],
)
def test_a_proposal_that_cannot_be_is_refused(racks: dict[int, str | None], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        propose({ORDERS[0]: (1, 2)}, racks, 0)


def test_lists_are_parsed_in_kafkas_words() -> None:
    assert parse_broker_list("2,1") == [2, 1]
    assert parse_topics('{"version": 1, "topics": [{"topic": "a"}, {"topic": "b"}]}') == ["a", "b"]
    for text, words in (("1,1", "duplicate entries"), ("1,x", "expected broker ids")):
        with pytest.raises(CommandError, match=words):
            parse_broker_list(text)
    for text, words in (("x", "not a valid JSON"), ('{"topics": [{"topic": "a"}, {"topic": "a"}]}', "duplicate")):
        with pytest.raises(CommandError, match=words):
            parse_topics(text)


def test_both_sides_of_every_move_are_throttled() -> None:
    ongoing = {ORDERS[0]: Reassignment((3, 1, 2), (3,), (2,)), ORDERS[1]: Reassignment((1, 4), (4,), ())}
    moving = moves(ongoing, [(ORDERS[0], [5, 1]), (ORDERS[2], [1, 6])], {ORDERS[0]: (3, 1, 2), ORDERS[2]: (1, 2)})
    assert topic_throttles(moving) == {"orders": ("0:1,0:2,1:1,2:1,2:2", "0:5,1:4,2:6")}


def test_a_proposal_is_generated_and_executed_with_a_throttle(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "topics.json"
    file.write_text(json.dumps({"version": 1, "topics": [{"topic": "orders"}]}))
    base = ["reassign-partitions", "--bootstrap-server", server]
    assert main([*base, "--generate", "--topics-to-move-json-file", str(file), "--broker-list", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[3]) == (
        "Current partition replica assignment",
        "Proposed partition reassignment configuration",
    )
    assert json.loads(lines[1]) == json.loads(lines[4])
    plan = tmp_path / "plan.json"
    plan.write_text(lines[4])
    execute = [*base, "--execute", "--reassignment-json-file", str(plan), "--throttle", "5000", "--additional"]
    assert main(execute) == 0
    assert "The inter-broker throttle limit was set to 5000 B/s" in capsys.readouterr().out.splitlines()
    with Admin(server) as admin:
        rate = "leader.replication.throttled.rate"
        replicas = "leader.replication.throttled.replicas"
        assert admin.describe_configs("1", BROKER)[rate].value == "5000"
        assert admin.describe_configs("orders", TOPIC)[replicas].value == "0:1,1:1"
        assert main([*base, "--verify", "--reassignment-json-file", str(plan)]) == 0
        assert admin.describe_configs("orders", TOPIC)[replicas].value == ""
    assert main([*base, "--generate", "--topics-to-move-json-file", str(file)]) == 1
    assert 'Missing required argument "[broker-list]"' in capsys.readouterr().err
