"""Scenarios of many producers and consumers at once, read from TOML, and the plans that they mean.

    title = "orders and clicks"
    warm_up_seconds = 5

    [[topics]]
    name = "orders"
    partitions = 6

    [[producers]]
    topic = "orders"
    clients = 2               # the rate is of both together
    record_size = 512
    codec = "zstd"
    rate = 20000              # records a second; left out: as fast as it goes
    keys = 100000             # left out: records without keys
    skew = 1.0                # Zipf's exponent over the keys; 0: all alike
    properties = { "linger.ms" = "5" }

    [[consumers]]
    topic = "orders"
    clients = 2
    group = "billing"         # left out: partitions are dealt to the clients

    [[steps]]
    seconds = 30

    [[steps]]
    seconds = 30
    rate = 2.0                # times the producers' rates

Owns the format and its errors, which name the file, the place and what would be right. Talks to nobody.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from pybroker.client.errors import SettingError
from pybroker.client.settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from pybroker_spark.load.errors import ScenarioError
from pybroker_spark.load.plan import STAMP_BYTES, ClientPlan, ConsumerPlan, LoadPlan, ProducerPlan
from pybroker_spark.load.schedule import UNLIMITED, Step

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_PACED_NAP_S = 0.0002
_END_IDLE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic, made before the load where it is missing."""

    name: str
    partitions: int = 1
    replication_factor: int = 1
    config: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Producers:
    """Producers that are alike."""

    topic: str
    clients: int = 1
    record_size: int = 100
    codec: str = "none"
    rate: float = UNLIMITED
    keys: int = 0
    skew: float = 0.0
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumers:
    """Consumers that are alike."""

    topic: str
    clients: int = 1
    group: str = ""
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A time of the load."""

    seconds: float
    rate: float = 1.0
    """By which the producers' rates are multiplied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole file."""

    title: str
    topics: tuple[Topic, ...]
    producers: tuple[Producers, ...]
    consumers: tuple[Consumers, ...] = ()
    steps: tuple[Phase, ...]
    warm_up_seconds: float = 0.0

    def clients(self) -> int:
        """How many clients it has in all."""
        return sum(p.clients for p in self.producers) + sum(c.clients for c in self.consumers)


_Table = TypeVar("_Table", Topic, Producers, Consumers, Phase)
_LISTS: dict[str, type[Any]] = {"topics": Topic, "producers": Producers, "consumers": Consumers, "steps": Phase}
_POSITIVE = frozenset({"partitions", "replication_factor", "clients", "record_size", "rate", "seconds"})
_NUMBERS: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "str": (str,)}
_WORDS = {"int": "a whole number", "float": "a number", "str": "a text", "dict[str, str]": "a table of texts"}


def read_scenario(path: Path) -> Scenario:
    """Read and check one file. Raises ScenarioError."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: no TOML: {error}") from None
    return build_scenario(document, str(path))


def build_scenario(document: Mapping[str, Any], where: str) -> Scenario:
    """What a file's tables mean; `where` is its name in errors. Raises ScenarioError."""
    known = {each.name for each in fields(Scenario)}
    for key in document:
        if key not in known:
            raise ScenarioError(f"{where}: {key} is no key of a scenario; these are: {', '.join(sorted(known))}")
    for key in ("title", "topics", "producers", "steps"):
        if not document.get(key):
            raise ScenarioError(f"{where}: {key} is missing")
    values: dict[str, Any] = {"title": str(document["title"])}
    if "warm_up_seconds" in document:
        values["warm_up_seconds"] = _value(document["warm_up_seconds"], "float", "warm_up_seconds", where)
    for key, kind in _LISTS.items():
        tables = document.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise ScenarioError(f"{where}: {key} is no list of tables; write [[{key}]]")
        values[key] = tuple(_table(kind, t, f"{where}: {key}[{i}]") for i, t in enumerate(tables))
    scenario = Scenario(**values)
    _check(scenario, where)
    return scenario


def _table(kind: type[_Table], table: Mapping[str, Any], where: str) -> _Table:
    declared = {each.name: each for each in fields(kind)}
    for key in table:
        if key not in declared:
            raise ScenarioError(f"{where}: {key} is not known; these are: {', '.join(declared)}")
    for name, each in declared.items():
        if name not in table and each.default is MISSING and each.default_factory is MISSING:
            raise ScenarioError(f"{where}: {name} is missing")
    return kind(**{key: _value(value, str(declared[key].type), key, where) for key, value in table.items()})


def _value(value: Any, kind: str, key: str, where: str) -> Any:
    """A value of the declared type. Raises ScenarioError."""
    if kind == "dict[str, str]":
        fits = isinstance(value, dict) and all(isinstance(v, str | int | float) for v in value.values())
    else:
        fits = isinstance(value, _NUMBERS[kind]) and not isinstance(value, bool)
    if not fits:
        raise ScenarioError(f"{where}: {key} = {value!r} is not {_WORDS[kind]}")
    if isinstance(value, float) and (math.isnan(value) or (math.isinf(value) and key != "rate")):
        raise ScenarioError(f"{where}: {key} = {value} must be a finite number")
    if isinstance(value, int | float) and (value < 0 or (key in _POSITIVE and value == 0)):
        raise ScenarioError(f"{where}: {key} = {value} must be {'above' if key in _POSITIVE else 'at least'} 0")
    if isinstance(value, dict):
        return {name: _property(v) for name, v in value.items()}
    return value


def _property(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check(scenario: Scenario, where: str) -> None:
    """What one table alone cannot say. Raises ScenarioError."""
    topics = [topic.name for topic in scenario.topics]
    for name in topics:
        if topics.count(name) > 1:
            raise ScenarioError(f"{where}: topics: {name} is there {topics.count(name)} times")
    wanted = [(f"producers[{index}]", producers.topic) for index, producers in enumerate(scenario.producers)]
    wanted += [(f"consumers[{index}]", consumers.topic) for index, consumers in enumerate(scenario.consumers)]
    for place, topic in wanted:
        if topic not in topics:
            raise ScenarioError(f"{where}: {place}: topic = {topic!r} is none of topics: {', '.join(topics)}")
    for index, producers in enumerate(scenario.producers):
        at = f"{where}: producers[{index}]"
        if producers.codec not in CODECS:
            raise ScenarioError(f"{at}: codec = {producers.codec!r} is none of {', '.join(CODECS)}")
        if producers.record_size < STAMP_BYTES:
            size = producers.record_size
            raise ScenarioError(f"{at}: record_size = {size} has no room for a stamp of {STAMP_BYTES} bytes")
        if producers.skew and not producers.keys:
            raise ScenarioError(f"{at}: skew = {producers.skew} is over keys, and there are none: set keys")
        _check_properties(ProducerSettings, producers.properties, at)
    for index, consumers in enumerate(scenario.consumers):
        _check_properties(ConsumerSettings, consumers.properties, f"{where}: consumers[{index}]")
    if scenario.warm_up_seconds >= (length := sum(step.seconds for step in scenario.steps)):
        warm_up = scenario.warm_up_seconds
        raise ScenarioError(f"{where}: warm_up_seconds = {warm_up} leaves nothing of steps of {length} seconds in all")


def _check_properties(kind: type[ConnectionSettings], properties: Mapping[str, str], where: str) -> None:
    """Refuse here what the clients in the tasks would refuse. Raises ScenarioError."""
    try:
        kind.from_properties({"bootstrap.servers": "any:1", **properties})
    except SettingError as error:
        raise ScenarioError(f"{where}: properties: {error}") from None


def build_plan(
    scenario: Scenario,
    bootstrap_servers: str,
    ends: Mapping[str, Sequence[int]],
    *,
    run: int,
    tasks: int,
    interval_s: float = 1.0,
    properties: Mapping[str, str] | None = None,
) -> LoadPlan:
    """The plan of a run; `ends` are the end offsets of each topic's partitions, where assigned consumers begin."""
    common = dict(properties or {})
    clients: list[ClientPlan] = []
    for producers in scenario.producers:
        clients += _producer_plans(scenario, producers, bootstrap_servers, len(ends[producers.topic]), common)
    for consumers in scenario.consumers:
        clients += _consumer_plans(scenario, consumers, bootstrap_servers, ends[consumers.topic], common)
    return LoadPlan(run=run, clients=tuple(clients), tasks=min(tasks, len(clients)), interval_s=interval_s)


def _producer_plans(
    scenario: Scenario, producers: Producers, servers: str, partitions: int, common: Mapping[str, str]
) -> list[ProducerPlan]:
    rate = producers.rate / producers.clients
    return [
        ProducerPlan(
            bootstrap_servers=servers,
            properties={**common, "compression.type": producers.codec, **producers.properties},
            topic=producers.topic,
            partitions=tuple((first + number) % partitions for number in range(partitions)),
            record_size=producers.record_size,
            steps=tuple(Step(step.seconds, rate * step.rate) for step in scenario.steps),
            warm_up_s=scenario.warm_up_seconds,
            stamped=True,
            nap_s=_PACED_NAP_S,
            keys=producers.keys,
            skew=producers.skew,
        )
        for first in range(producers.clients)
    ]


def _consumer_plans(
    scenario: Scenario, consumers: Consumers, servers: str, ends: Sequence[int], common: Mapping[str, str]
) -> list[ConsumerPlan]:
    plans = []
    for first in range(consumers.clients):
        group = {"group.id": consumers.group} if consumers.group else {}
        dealt = range(first, len(ends), consumers.clients)
        plans.append(
            ConsumerPlan(
                bootstrap_servers=servers,
                properties={**common, **group, **consumers.properties},
                topic=consumers.topic,
                assigned={} if group else {(consumers.topic, p): ends[p] for p in dealt},
                group_topics=(consumers.topic,) if group else (),
                idle_s=_END_IDLE_S,
                warm_up_s=scenario.warm_up_seconds,
                stamped=True,
            )
        )
    return plans
