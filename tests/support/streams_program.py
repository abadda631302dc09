"""An application that counts by key, as a process that tests kill: `python -m tests.support.streams_program JSON`.

The argument has the settings, and `topics` with the names of input and output. The program prints each state, and
closes the application at the end of its input.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pybroker.streams import INT64, STRING, StreamsBuilder
from pybroker.streams.application.kafka_streams import KafkaStreams
from pybroker.streams.topology.topology import Topology


def counting(source: str, target: str, settings: dict[str, Any]) -> Topology:
    """Return the topology: a count by the first letter of the value, over a repartition topic."""
    builder = StreamsBuilder()
    (
        builder.stream(source, key_serde=STRING, value_serde=STRING)
        .group_by(lambda _key, value: value[0], key_serde=STRING, value_serde=STRING)
        .count(store="counts")
        .to_stream()
        .to(target, key_serde=STRING, value_serde=INT64)
    )
    return builder.build(settings)


def main() -> None:
    """Run until the input ends."""
    settings = json.loads(sys.argv[1])
    source, target = settings.pop("topics")
    app = KafkaStreams(counting(source, target, settings), settings)
    app.set_state_listener(lambda new, _old: print(new.name, flush=True))
    app.start()
    sys.stdin.read()
    app.close()


if __name__ == "__main__":
    main()
