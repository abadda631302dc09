"""Random topologies that Kafka accepts: chains of operations with joins, merges and aggregations, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.support.streams_functions import LISTS, MAPPERS, PAIRS, PREDICATES
from tests.support.streams_steps import Step, op, steps

OF_TEXT = sorted(set(MAPPERS) - {"windowed_key_as_text", "count_as_text"})
JOINERS = ("concat_null_as_star", "key_and_both", "null_if_same_start")
LARGEST = 12
"""The most operations of a topology, sources and sinks left out."""


class Generator:
    """Adds steps to a topology. `streams` and `tables` are the ids that later steps can continue."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.steps: list[Step] = []
        self.streams: list[str] = []
        self.tables: list[str] = []
        self._ids = 0

    def topology(self) -> list[Step]:
        """Return the steps of a random topology. Every stream and table that nothing continues ends in a sink."""
        for topic in ("in", "other"):
            self.streams.append(self.add(op("stream", topics=[topic])))
        for topic in ("table", "table2"):
            self.tables.append(self.add(op("table", topic=topic, **self.stored(f"{topic}-store"))))
        for _ in range(self.dice.randrange(2, LARGEST)):
            self.dice.choice((self.stateless, self.stateless, self.aggregate, self.table_operation, self.join))()
        continued = {step.get("on") for step in self.steps} | {step.get("with") for step in self.steps}
        for table in [one for one in self.tables if one not in continued]:
            self.streams.append(self.add(op("to_stream", table)))
        for stream in [one for one in self.streams if one not in continued]:
            self.add(op("to", stream, topic=f"out-{stream}"))
        return steps(*self.steps)

    def add(self, step: Step) -> str:
        """Append a step and return its id."""
        self._ids += 1
        identifier = f"n{self._ids}"
        if step["op"] not in ("to", "group_by", "group_by_key", "windowed_by") and self.dice.random() < 0.15:
            step = {**step, "name": f"named-{self._ids}"}
        self.steps.append({"id": identifier, **step})
        return identifier

    def stored(self, name: str) -> dict[str, Any]:
        """Return options of a store: often none, so that names are generated."""
        options: dict[str, Any] = {}
        if self.dice.random() < 0.4:
            options["store"] = name
        if self.dice.random() < 0.2:
            options["caching"] = False
        if self.dice.random() < 0.1:
            options["logging"] = False
        return options

    def pick(self, names: Any) -> str:
        """Return one of several names."""
        return self.dice.choice(sorted(names))

    def stateless(self) -> None:
        """Continue a stream with an operation without state, or merge it with another."""
        on = self.dice.choice(self.streams)
        others = [one for one in self.streams if one != on]
        choices: list[Callable[[], Step]] = [
            lambda: op("filter", on, fn=self.pick(PREDICATES)),
            lambda: op("filter_not", on, fn=self.pick(PREDICATES)),
            lambda: op("map_values", on, fn=self.pick(OF_TEXT)),
            lambda: op("select_key", on, fn=self.pick(OF_TEXT)),
            lambda: op("map", on, fn=self.pick(PAIRS)),
            lambda: op("flat_map_values", on, fn=self.pick(LISTS)),
            lambda: op("flat_map", on, fn=self.pick(LISTS)),
            lambda: op("peek", on),
            lambda: op("repartition", on),
            lambda: op("merge", on, with_=self.dice.choice(others)),
        ]
        self.streams.append(self.add(self.dice.choice(choices)()))

    def aggregate(self) -> None:
        """Continue a stream with a group and an aggregation, with or without windows."""
        on = self.dice.choice(self.streams)
        kind = self.dice.choice(("none", "none", "time", "hopping", "sliding", "session"))
        # Kafka has no default serde of windowed keys, so a windowed table needs the serde of its keys.
        keys = {} if kind == "none" else {"key_serde": "string"}
        group = self.add(
            op("group_by", on, fn=self.pick(OF_TEXT), **keys)
            if self.dice.random() < 0.5
            else op("group_by_key", on, **keys)
        )
        store = self.stored(f"{group}-store")
        merger = {"merger": "append"} if kind == "session" else {}
        if kind != "none":
            windows = {
                "time": {"kind": "time", "size": 100, "grace": self.dice.choice((0, 50, 500))},
                "hopping": {"kind": "time", "size": 100, "advance": 30, "grace": self.dice.choice((0, 200))},
                "sliding": {"kind": "sliding", "size": 60, "grace": self.dice.choice((0, 100))},
                "session": {"kind": "session", "size": 40, "grace": self.dice.choice((0, 300))},
            }[kind]
            emit = {"emit": "close"} if self.dice.random() < 0.2 else {}
            group = self.add(op("windowed_by", group, windows=windows, **emit))
        choice = self.dice.choice(("count", "reduce", "aggregate"))
        if choice == "count":
            counted = self.add(op("count", group, **store))
            table = self.add(op("map_values", counted, fn="count_as_text"))
        elif choice == "reduce":
            table = self.add(op("reduce", group, fn=self.dice.choice(("concat", "max_string", "second")), **store))
        else:
            table = self.add(
                op("aggregate", group, fn=self.dice.choice(("append", "append_or_null")), **merger, **store)
            )
        if kind == "none":
            self.tables.append(table)
            return
        if self.dice.random() < 0.3 and "emit" not in self.steps[-2]:
            table = self.add(op("suppress", table, until="window_closes"))
        self.streams.append(self.add(op("to_stream", table, fn="windowed_key_as_text")))

    def table_operation(self) -> None:
        """Continue a table, or turn a stream into one or a table into a stream."""
        on = self.dice.choice(self.tables)
        other = self.dice.choice(self.tables)
        store = self.stored(f"t{self._ids}-store")
        match self.dice.randrange(8):
            case 0:
                self.tables.append(self.add(op("filter", on, fn=self.pick(PREDICATES), **store)))
            case 1:
                self.tables.append(self.add(op("map_values", on, fn=self.pick(OF_TEXT), **store)))
            case 2:
                group = self.add(op("group_by", on, fn=self.pick(PAIRS)))
                given = {"fn": "append", "subtractor": "remove_first", **store}
                self.tables.append(self.add(op("aggregate", group, **given)))
            case 3:
                self.tables.append(self.add(op("to_table", self.dice.choice(self.streams), **store)))
            case 4:
                self.streams.append(self.add(op("to_stream", on)))
            case 5 if on != other:
                operation = self.dice.choice(("join", "left_join", "outer_join"))
                self.tables.append(self.add(op(operation, on, with_=other, fn="concat_null_as_star", **store)))
            case 6 if on != other:
                operation = self.dice.choice(("join_on", "left_join_on"))
                given = {"with_": other, "extractor": "first_char_of_value", "fn": "concat_null_as_star", **store}
                self.tables.append(self.add(op(operation, on, **given)))
            case _:
                wait = self.dice.choice((30, 100))
                self.tables.append(self.add(op("suppress", on, until="time", wait=wait)))

    def join(self) -> None:
        """Join a stream with another stream or with a table."""
        on = self.dice.choice(self.streams)
        if self.dice.random() < 0.5:
            operation = self.dice.choice(("join", "left_join"))
            table = self.dice.choice(self.tables)
            self.streams.append(self.add(op(operation, on, with_=table, fn=self.dice.choice(JOINERS), with_key=True)))
            return
        other = self.dice.choice([one for one in self.streams if one != on])
        windows = {"before": self.dice.choice((0, 50)), "after": 80, "grace": self.dice.choice((0, 60))}
        operation = self.dice.choice(("join", "left_join", "outer_join"))
        joiner = self.dice.choice(JOINERS)
        self.streams.append(self.add(op(operation, on, with_=other, fn=joiner, windows=windows, with_key=True)))


def random_topology(dice: random.Random) -> list[Step]:
    """Return the steps of a random topology."""
    return Generator(dice).topology()
