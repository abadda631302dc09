"""Scenarios of many producers and consumers at once, read from TOML, and the plans built from them.

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

Owns the format and the rules between tables. `toml_tables` checks the types of keys, and builds errors with file, key
and value. Opens no connection.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pybroker.client.errors import SettingError
from pybroker.client.settings import ConnectionSettings, ConsumerSettings, ProducerSettings
from pybroker_spark.load import toml_tables
from pybroker_spark.load.errors import ScenarioError
from pybroker_spark.load.plan import (
    STAMP_BYTES,
    ClientPlan,
    ConsumerPlan,
    LoadPlan,
    ProducerPlan,
    build_producer_properties,
)
from pybroker_spark.load.schedule import UNLIMITED, Step

_PACED_NAP_S = 0.0002
_END_IDLE_S = 30.0
_FINITE = sys.float_info.max

Name = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(gt=0)]
Rate = Annotated[float, Meta(gt=0)]
Seconds = Annotated[float, Meta(gt=0, le=_FINITE)]
Settings = dict[str, str | int | float | bool]
"""Kafka settings, whose values need no quotes."""


def build_properties(settings: Settings) -> dict[str, str]:
    """Return settings as Kafka's clients and requests take them: every value a text."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class Topic(Table, frozen=True, kw_only=True):
    """A topic, created before the load where it is missing."""

    name: Name
    partitions: Count = 1
    replication_factor: Count = 1
    config: Settings = msgspec.field(default_factory=dict)

    def build_config(self) -> dict[str, str]:
        """Return the topic's configs for a CreateTopics request."""
        return build_properties(self.config)


class Producers(Table, frozen=True, kw_only=True):
    """One or several producers with equal settings."""

    topic: Name
    clients: Count = 1
    record_size: Annotated[int, Meta(ge=STAMP_BYTES)] = 100
    """Size in bytes; a record starts with its stamp."""
    codec: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    rate: Rate = UNLIMITED
    """Records a second of all clients together."""
    keys: Annotated[int, Meta(ge=0)] = 0
    skew: Annotated[float, Meta(ge=0, le=_FINITE)] = 0.0
    properties: Settings = msgspec.field(default_factory=dict)


class Consumers(Table, frozen=True, kw_only=True):
    """One or several consumers with equal settings."""

    topic: Name
    clients: Count = 1
    group: str = ""
    properties: Settings = msgspec.field(default_factory=dict)


class Phase(Table, frozen=True, kw_only=True):
    """A period of the load."""

    seconds: Seconds
    rate: Rate = 1.0
    """Factor of the producers' rates."""


class Scenario(Table, frozen=True, kw_only=True):
    """A whole file."""

    title: Name
    topics: Annotated[tuple[Topic, ...], Meta(min_length=1)]
    producers: Annotated[tuple[Producers, ...], Meta(min_length=1)]
    consumers: tuple[Consumers, ...] = ()
    steps: Annotated[tuple[Phase, ...], Meta(min_length=1)]
    warm_up_seconds: Annotated[float, Meta(ge=0, le=_FINITE)] = 0.0

    def clients(self) -> int:
        """Return the total number of clients."""
        return sum(p.clients for p in self.producers) + sum(c.clients for c in self.consumers)


def read_scenario(path: Path) -> Scenario:
    """Read and check one file. Raises ScenarioError."""
    scenario = toml_tables.read(path, Scenario)
    _check(scenario, str(path))
    return scenario


def _check(scenario: Scenario, where: str) -> None:
    """Check rules between tables. Raises ScenarioError."""
    topics = [topic.name for topic in scenario.topics]
    for name in topics:
        if topics.count(name) > 1:
            raise ScenarioError(f"{where}: topics: {name} is there {topics.count(name)} times")
    wanted = [(f"producers[{index}]", producers.topic) for index, producers in enumerate(scenario.producers)]
    wanted += [(f"consumers[{index}]", consumers.topic) for index, consumers in enumerate(scenario.consumers)]
    for place, topic in wanted:
        if topic not in topics:
            raise ScenarioError(f"{where}: {place}.topic = {topic!r}: it is none of topics: {', '.join(topics)}")
    for index, producers in enumerate(scenario.producers):
        at = f"{where}: producers[{index}]"
        if producers.skew and not producers.keys:
            raise ScenarioError(f"{at}.skew = {producers.skew}: it is over keys, and there are none: set keys")
        _check_properties(ProducerSettings, producers.properties, at)
    for index, consumers in enumerate(scenario.consumers):
        _check_properties(ConsumerSettings, consumers.properties, f"{where}: consumers[{index}]")
    if scenario.warm_up_seconds >= (length := sum(step.seconds for step in scenario.steps)):
        warm_up = scenario.warm_up_seconds
        raise ScenarioError(
            f"{where}: warm_up_seconds = {warm_up:g} leaves nothing of steps of {length:g} seconds in all"
        )


def _check_properties(kind: type[ConnectionSettings], properties: Settings, where: str) -> None:
    """Reject properties that the clients in the tasks would reject. Raises ScenarioError."""
    try:
        kind.check(build_properties(properties))
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
    """Return the plan of a run; `ends` are each topic's end offsets by partition, where assigned consumers start."""
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
    properties = {**common, "compression.type": producers.codec, **build_properties(producers.properties)}
    return [
        ProducerPlan(
            bootstrap_servers=servers,
            properties=build_producer_properties(properties, first),
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
                properties={**common, **group, **build_properties(consumers.properties)},
                topic=consumers.topic,
                assigned={} if group else {(consumers.topic, p): ends[p] for p in dealt},
                group_topics=(consumers.topic,) if group else (),
                joins_before_start=bool(group),
                idle_s=_END_IDLE_S,
                warm_up_s=scenario.warm_up_seconds,
                stamped=True,
            )
        )
    return plans
