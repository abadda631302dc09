"""What a load does: its producers and consumers, and which Spark task runs which of them.

Values only, pickled from the driver to the tasks. Knows neither Spark nor a connection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pybroker_spark.load.schedule import Step

PYBROKER, CONFLUENT = "pybroker", "confluent-kafka"
ENGINES = (PYBROKER, CONFLUENT)
STAMP_BYTES = 24
"""Producer u64, sequence u64, time in microseconds since the epoch i64: what a stamped value begins with."""
TRANSACTIONAL_ID = "transactional.id"
PRODUCERS_OF_A_RUN = 10_000
"""Producer numbers of a run are its own: an audit distinguishes two runs into one topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPlan:
    """One producer."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(repr=False)
    topic: str
    partitions: tuple[int, ...] = ()
    """Those it goes round in; none: the one that the client is filling, which cannot be stamped."""
    record_size: int
    records: int | None = None
    """How many; None: until the steps are over."""
    steps: tuple[Step, ...] = (Step(),)
    warm_up_records: int = 0
    """Of its own; those after them are the steady state's."""
    warm_up_s: float = 0.0
    stamped: bool = False
    engine: str = PYBROKER
    nap_s: float = 0.001
    """The shortest wait between two checks of the schedule."""
    keys: int = 0
    """How many different keys the records have, which lead to their partitions; they are stamped. 0: no keys."""
    skew: float = 0.0
    """Exponent of Zipf's law over the keys: 0 chooses them alike."""
    transaction_s: float = 3.0
    """A transaction is committed after so long, where the properties name a `transactional.id`."""

    @property
    def role(self) -> str:
        """As reports name it."""
        return "producer"

    @property
    def is_transactional(self) -> bool:
        """Whether its records are sent in transactions."""
        return bool(self.properties.get(TRANSACTIONAL_ID))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPlan:
    """One consumer: of assigned partitions, or a member of a group."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(repr=False)
    topic: str
    """Its name, or what a report calls several of them."""
    assigned: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition, the offset to begin at."""
    group_topics: tuple[str, ...] = ()
    """What it subscribes to, where it is a group's member."""
    joins_before_start: bool = False
    """Whether the load begins when the group has all its members; else they join at its start."""
    records: int | None = None
    """How many it is to read; None: as long as the load goes on."""
    idle_s: float = 10.0
    """It ends when nothing came for so long."""
    warm_up_s: float = 0.0
    stamped: bool = False

    @property
    def role(self) -> str:
        """As reports name it."""
        return "consumer"


ClientPlan = ProducerPlan | ConsumerPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPlan:
    """All clients of a run."""

    run: int
    """Distinguishes it from other runs: seconds since the epoch."""
    clients: tuple[ClientPlan, ...]
    tasks: int
    interval_s: float = 1.0
    """How often each client reports a row."""
    group_records: int | None = None
    """Members of a group end when they have read so many together."""

    def producer_number(self, client: int) -> int:
        """What the stamps of this client's records say."""
        return self.run * PRODUCERS_OF_A_RUN + client

    def task_of(self, client: int) -> int:
        """The task that runs a client: they are dealt in turns."""
        return client % self.tasks

    def clients_of(self, task: int) -> list[int]:
        """The clients that a task runs."""
        return [client for client in range(len(self.clients)) if self.task_of(client) == task]


def build_producer_properties(properties: Mapping[str, str], number: int) -> dict[str, str]:
    """Those of one of several producers: a `transactional.id` gets its number, for each fences what has its own."""
    own = dict(properties)
    if own.get(TRANSACTIONAL_ID):
        own[TRANSACTIONAL_ID] += f"-{number}"
    return own


def deal(total: int, shares: int) -> list[int]:
    """`total` in so many whole parts that differ by one at most."""
    return [total // shares + (number < total % shares) for number in range(shares)]


def deal_by_weight(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole parts as near to these weights as whole numbers come; alike where all are zero."""
    whole = sum(weights)
    if whole == 0:
        return deal(total, len(weights))
    parts, passed, given = [], 0, 0
    for weight in weights:
        passed += weight
        parts.append(total * passed // whole - given)
        given += parts[-1]
    return parts
