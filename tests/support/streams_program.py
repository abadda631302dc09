"""An application that counts, as a process that tests kill: `python -m tests.support.streams_program JSON`.

The argument has the settings, and `topics` with the names of the input, of the counts and, optionally, of the counts of
windows. The program prints each state, and closes the application at the end of its input. It ends with status 1 if the
application fails.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import timedelta
from typing import Any

from pybroker.streams import INT64, STRING, State, StreamsBuilder, TimeWindows
from pybroker.streams.application.kafka_streams import KafkaStreams
from pybroker.streams.topology.topology import Topology

WINDOW_MS = 1_000
GRACE = timedelta(days=1)
"""Partitions that were delayed by a fault are not late."""


def counting(topics: list[str], settings: dict[str, Any]) -> Topology:
    """Return the topology: a count by the first letter of the value, over a repartition topic."""
    builder = StreamsBuilder()
    source, target, *windowed = topics
    by_letter = builder.stream(source, key_serde=STRING, value_serde=STRING).group_by(
        lambda _key, value: value[0], key_serde=STRING, value_serde=STRING
    )
    by_letter.count(store="counts").to_stream().to(target, key_serde=STRING, value_serde=INT64)
    for topic in windowed:
        counts = by_letter.windowed_by(TimeWindows.of_size_and_grace(WINDOW_MS, GRACE)).count(store="windows")
        by_start = counts.to_stream(lambda window, _count: f"{window.key}@{window.window.start}")
        by_start.to(topic, key_serde=STRING, value_serde=INT64)
    return builder.build(settings)


def report(new: State, _old: State) -> None:
    """Print the state. The process ends with an application that has failed."""
    print(new.name, flush=True)
    if new is State.ERROR:
        os._exit(1)


def main() -> None:
    """Run until the input ends."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(threadName)s %(message)s")
    settings = json.loads(sys.argv[1])
    app = KafkaStreams(counting(settings.pop("topics"), settings), settings)
    app.set_state_listener(report)
    app.start()
    sys.stdin.read()
    app.close()


if __name__ == "__main__":
    main()
