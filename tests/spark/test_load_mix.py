"""Claims about `pybroker_spark.load.mix`: what a scenario means, and that what is wrong in one is named exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker_spark.load import ConsumerPlan, ProducerPlan, ScenarioError, Step
from pybroker_spark.load.mix import build_plan, read_scenario

WHOLE = """
title = "orders and clicks"
warm_up_seconds = 1

[[topics]]
name = "orders"
partitions = 4
config = { "cleanup.policy" = "compact" }

[[topics]]
name = "clicks"

[[producers]]
topic = "orders"
clients = 2
record_size = 512
codec = "zstd"
rate = 1000
keys = 100
skew = 1.1
properties = { "linger.ms" = 5, "enable.idempotence" = false }

[[producers]]
topic = "clicks"

[[consumers]]
topic = "orders"
clients = 2

[[consumers]]
topic = "orders"
group = "billing"

[[steps]]
seconds = 3

[[steps]]
seconds = 2
rate = 2.5
"""


def scenario_file(folder: Path, text: str) -> Path:
    path = folder / "mix.toml"
    path.write_text(text)
    return path


def test_a_scenario_becomes_a_plan_of_its_clients(tmp_path: Path) -> None:
    scenario = read_scenario(scenario_file(tmp_path, WHOLE))
    assert scenario.topics[0].config == {"cleanup.policy": "compact"}
    ends = {"orders": [7, 8, 9, 10], "clicks": [0]}
    plan = build_plan(scenario, "b:9", ends, run=5, tasks=3, properties={"client.id": "mix"})
    assert (len(plan.clients), plan.tasks, scenario.clients()) == (6, 3, 6)
    first, second, clicks = (client for client in plan.clients if isinstance(client, ProducerPlan))
    assert first.steps == (Step(3, 500), Step(2, 1250))
    assert (first.partitions, second.partitions) == ((0, 1, 2, 3), (1, 2, 3, 0))
    assert (first.keys, first.skew, first.record_size, first.warm_up_s, first.stamped) == (100, 1.1, 512, 1, True)
    assert first.properties == {
        "client.id": "mix",
        "compression.type": "zstd",
        "linger.ms": "5",
        "enable.idempotence": "false",
    }
    assert [step.rate for step in clicks.steps] == [float("inf")] * 2
    even, odd, member = (client for client in plan.clients if isinstance(client, ConsumerPlan))
    assert (even.assigned, odd.assigned) == (
        {("orders", 0): 7, ("orders", 2): 9},
        {("orders", 1): 8, ("orders", 3): 10},
    )
    assert (member.group_topics, member.properties["group.id"], member.assigned) == (("orders",), "billing", {})


def test_producers_in_transactions_have_an_id_each(tmp_path: Path) -> None:
    text = WHOLE.replace('"enable.idempotence" = false', '"transactional.id" = "orders"')
    plan = build_plan(
        read_scenario(scenario_file(tmp_path, text)), "b:9", {"orders": [0] * 4, "clicks": [0]}, run=5, tasks=3
    )
    producers = [client for client in plan.clients if isinstance(client, ProducerPlan)]
    assert [client.properties.get("transactional.id") for client in producers] == ["orders-0", "orders-1", None]
    assert [client.is_transactional for client in producers] == [True, True, False]


def test_more_tasks_than_clients_are_not_asked_for(tmp_path: Path) -> None:
    scenario = read_scenario(scenario_file(tmp_path, WHOLE))
    assert build_plan(scenario, "b:9", {"orders": [0] * 4, "clicks": [0]}, run=5, tasks=64).tasks == 6


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (("title =", "titel ="), "Object contains unknown field `titel`; these are known: title, topics, producers"),
        (('title = "orders and clicks"', ""), "Object missing required field `title`"),
        (('title = "orders and clicks"', 'title = ""'), "title = '': Expected `str` of length >= 1"),
        (("[[topics]]", "[[subjects]]"), "unknown field `subjects`"),
        (("warm_up_seconds = 1", "warm_up_seconds = -1"), "warm_up_seconds = -1: Expected `float` >= 0.0"),
        (
            ("warm_up_seconds = 1", "warm_up_seconds = 5"),
            "warm_up_seconds = 5 leaves nothing of steps of 5 seconds",
        ),
        (("partitions = 4", "partitions = 0"), r"topics\[0\]\.partitions = 0: Expected `int` >= 1"),
        (("partitions = 4", 'partitions = "4"'), r"topics\[0\]\.partitions = '4': Expected `int`, got `str`"),
        (('name = "clicks"', 'name = "orders"'), "topics: orders is there 2 times"),
        (
            ("clients = 2\nrecord", "client = 2\nrecord"),
            r"producers\[0\]: Object contains unknown field `client`; these are known: topic, clients, record_size",
        ),
        (("record_size = 512", "record_size = 23"), r"producers\[0\]\.record_size = 23: Expected `int` >= 24"),
        (
            ('codec = "zstd"', 'codec = "zip"'),
            r"producers\[0\]\.codec = 'zip': Invalid enum value 'zip'; these are known: none, gzip, snappy, lz4, zstd",
        ),
        (("keys = 100", "keys = 0"), r"producers\[0\]\.skew = 1.1: it is over keys, and there are none: set keys"),
        (("rate = 1000", "rate = true"), r"producers\[0\]\.rate = True: Expected `float`, got `bool`"),
        (("rate = 1000", "rate = 0"), r"producers\[0\]\.rate = 0: Expected `float` > 0.0"),
        (
            ('topic = "clicks"', 'topic = "click"'),
            r"producers\[1\]\.topic = 'click': it is none of topics: orders, clicks",
        ),
        (('topic = "clicks"', ""), r"producers\[1\]: Object missing required field `topic`"),
        (
            ('[[consumers]]\ntopic = "orders"\ngroup', '[[consumers]]\ntopic = "x"\ngroup'),
            r"consumers\[1\]\.topic = 'x': it is none of topics",
        ),
        (
            ('{ "linger.ms" = 5,', '{ "linger.ms" = [5],'),
            r"producers\[0\]\.properties = {'linger.ms': \[5\].*: Expected `bool \| int \| float \| str`, got `array`",
        ),
        (('"linger.ms" = 5', '"linger.ms" = "x"'), r"producers\[0\]: properties: linger.ms=x: must be a number"),
        (("rate = 1000", "rate = nan"), r"producers\[0\]\.rate = nan: Expected `float` > 0.0"),
        (("seconds = 3", "seconds = inf"), r"steps\[0\]\.seconds = inf: Expected `float` <= 1\.79"),
        (("seconds = 3", ""), r"steps\[0\]: Object missing required field `seconds`"),
        (('[[producers]]\ntopic = "clicks"', "[nothing]"), "unknown field `nothing`"),
        (("[[steps]]", "steps = 3\n[[nothing]]"), r"consumers\[1\]: Object contains unknown field `steps`"),
        (("[[steps]]", "[[steps"), "no TOML: "),
    ],
)
def test_what_is_wrong_is_named_with_its_place(change: tuple[str, str], reported: str, tmp_path: Path) -> None:
    text = WHOLE.replace(*change, 1) if change[0] != "[[topics]]" else WHOLE.replace(*change)
    assert text != WHOLE
    with pytest.raises(ScenarioError, match=reported) as refusal:
        read_scenario(scenario_file(tmp_path, text))
    assert str(refusal.value).startswith(str(tmp_path / "mix.toml"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"nothing\.toml: No such file"):
        read_scenario(tmp_path / "nothing.toml")
