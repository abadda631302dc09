"""The ledgers of all queries on a cluster: their list, their states, and their deletion.

Owns the decision which ledgers belong to no query. `ledger` reads entries, and `entries` defines them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pybroker.client import EARLIEST, LATEST, Admin, Fetcher, Record, TopicPartition
from pybroker.client.settings import AdminSettings
from pybroker_spark.sink.entries import Begun, Done, Wrote, parse_entry
from pybroker_spark.sink.errors import LedgerError
from pybroker_spark.sink.ledger import PREFIX, reading

_READ_SECONDS: Final = 60.0
_METADATA: Final = "metadata"
"""The file of a checkpoint that contains the query id."""


@dataclass(slots=True)
class LedgerState:
    """The state of a ledger, from its entries."""

    query: str
    done: int | None = None
    """The last batch that is done."""
    begun: int | None = None
    """A batch that has begun and is not done: the log may contain rows of it."""
    last_ms: int | None = None
    """The timestamp of the last entry; None without one."""

    @property
    def topic(self) -> str:
        """Return the ledger's topic."""
        return f"{PREFIX}{self.query}"

    def add(self, record: Record) -> None:
        """Apply an entry. Raises LedgerError for an invalid one."""
        entry = parse_entry(record.value)
        self.last_ms = max(record.timestamp_ms, self.last_ms or 0)
        match entry:
            case Done(batch=batch):
                self.done = max(batch, -1 if self.done is None else self.done)
            case Begun(batch=batch) | Wrote(batch=batch):
                self.begun = max(batch, -1 if self.begun is None else self.begun)

    def close(self) -> None:
        """Clear a begun batch up to the last batch that is done."""
        if self.begun is not None and self.done is not None and self.begun <= self.done:
            self.begun = None


def list_ledgers(bootstrap_servers: str, properties: Mapping[str, str]) -> list[LedgerState]:
    """Return the ledgers on a cluster, by query id. Raises LedgerError, ClientError."""
    with Admin(bootstrap_servers, AdminSettings.acting(properties)) as admin:
        names = sorted(name for name in admin.list_topics(internal=True) if name.startswith(PREFIX))
        partitions = [TopicPartition(name, 0) for name in names]
        starts = {p: found.offset for p, found in admin.list_offsets(dict.fromkeys(partitions, EARLIEST)).items()}
        ends = {p: found.offset for p, found in admin.list_offsets(dict.fromkeys(partitions, LATEST)).items()}
    states = {name: LedgerState(name.removeprefix(PREFIX)) for name in names}
    missing = {partition: starts[partition] for partition in partitions if starts[partition] < ends[partition]}
    deadline = time.monotonic() + _READ_SECONDS
    with Fetcher(bootstrap_servers, reading(properties)) as fetcher:
        fetcher.assign(missing)
        while any(fetcher.positions()[partition] < ends[partition] for partition in missing):
            for record in fetcher.poll(1.0):
                states[record.topic].add(record)
            if time.monotonic() > deadline:
                raise LedgerError(f"the ledgers {', '.join(states)} were not read within {_READ_SECONDS} s")
    for state in states.values():
        state.close()
    return list(states.values())


def delete_ledgers(bootstrap_servers: str, properties: Mapping[str, str], states: Iterable[LedgerState]) -> None:
    """Delete the topics of ledgers. A restarted query begins a new ledger. Raises ClientError."""
    with Admin(bootstrap_servers, AdminSettings.acting(properties)) as admin:
        admin.delete_topics([state.topic for state in states])


def queries_of_checkpoints(directory: Path) -> set[str]:
    """Return the ids of the queries whose checkpoints are in a directory or its subdirectories."""
    found = set()
    for file in directory.rglob(_METADATA):
        try:
            found.add(str(json.loads(file.read_text())["id"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # another file with this name
    return found
