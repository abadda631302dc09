"""One application of pybroker.streams for a row of the suite `streams`, run by `python -m pybench.streams_application`.

`bench/jclient/streams/StreamsPerf.java` is the same program for Kafka Streams. Arguments are `key=value`. Keys of the
row are `row`, `input`, `output`, `records` and `warm.up`, all others are settings. Prints `{"event": "running"}` and
`{"event": "done", ...}`, each in a line, and ends at the end of standard input.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from pybroker.streams import (
    BYTES,
    INT64,
    JSON,
    STRING,
    KafkaStreams,
    RestoreProgress,
    StreamsBuilder,
    TimeWindows,
    col,
    json_columns,
    time_windowed,
    with_columns,
)

OF_THE_ROW = ("row", "input", "output", "records", "warm.up")
STORE = "store"
WINDOW_MS = 60_000
ADVANCE_MS = 20_000
LARGE = 500
_SAMPLES = 1_000
_START_TIMEOUT_S = 120.0


def add_stateless(builder: StreamsBuilder, source: str, target: str) -> None:
    """Keep every record with an amount of more than 500, and double the amount."""
    stream = builder.stream(source, key_serde=STRING, value_serde=JSON)
    large = stream.filter(lambda _key, value: value["amount"] > LARGE)
    doubled = large.map_values(lambda value: value | {"amount": value["amount"] * 2})
    doubled.to(target, key_serde=STRING, value_serde=JSON)


def add_stateless_columns(builder: StreamsBuilder, source: str, target: str) -> None:
    """As `add_stateless`, by column expressions."""
    stream = builder.stream(source, key_serde=STRING, value_serde=json_columns(id=int, amount=int, pad=str))
    large = stream.filter(col("amount") > LARGE)
    large.map_values(with_columns(amount=col("amount") * 2)).to(target, value_serde=JSON)


def add_map(builder: StreamsBuilder, source: str, target: str) -> None:
    """Double the amount of every record."""
    stream = builder.stream(source, key_serde=STRING, value_serde=JSON)
    doubled = stream.map_values(lambda value: value | {"amount": value["amount"] * 2})
    doubled.to(target, key_serde=STRING, value_serde=JSON)


def add_count(builder: StreamsBuilder, source: str, target: str) -> None:
    """Count the records of each key."""
    stream = builder.stream(source, key_serde=STRING, value_serde=BYTES)
    stream.group_by_key().count(store=STORE).to_stream().to(target, key_serde=STRING, value_serde=INT64)


def add_windows(builder: StreamsBuilder, source: str, target: str) -> None:
    """Sum the amounts of each key in hopping windows."""
    size, advance = timedelta(milliseconds=WINDOW_MS), timedelta(milliseconds=ADVANCE_MS)
    windows = TimeWindows.of_size_with_no_grace(size).advance_by(advance)
    windowed = builder.stream(source, key_serde=STRING, value_serde=JSON).group_by_key().windowed_by(windows)
    sums = windowed.aggregate(
        lambda: 0, lambda _key, value, total: total + value["amount"], key_serde=STRING, value_serde=INT64
    )
    sums.to_stream().to(target, key_serde=time_windowed(STRING, WINDOW_MS), value_serde=INT64)


def add_restore(builder: StreamsBuilder, source: str, _target: str) -> None:
    """Read a table, whose store is restored from its changelog."""
    builder.table(source, key_serde=STRING, value_serde=BYTES, store=STORE)


TOPOLOGIES: Mapping[str, Callable[[StreamsBuilder, str, str], None]] = {
    "stateless": add_stateless,
    "stateless-columns": add_stateless_columns,
    "map": add_map,
    "count": add_count,
    "windows": add_windows,
    "restore": add_restore,
}
"""The function that adds the topology of each row to a builder."""


def open_application(row: Mapping[str, str], settings: Mapping[str, str]) -> KafkaStreams:
    """Return the application of a row, not started."""
    builder = StreamsBuilder()
    TOPOLOGIES[row["row"]](builder, row["input"], row["output"])
    return KafkaStreams(builder.build(), settings)


def process(app: KafkaStreams, records: int) -> dict[str, float]:
    """Process that many records and close the application, which commits. Returns the figures."""
    app.start()
    while processed(app) == 0:
        _check(app)
        time.sleep(0.002)
    begun_ms, used = time.time() * 1e3, time.process_time()
    while (total := processed(app)) < records:
        _check(app)
        time.sleep(0.005)
    app.close()
    _check(app)
    return {"begun_ms": begun_ms, "processed": total, "application_cpu_s": time.process_time() - used}


def processed(app: KafkaStreams) -> int:
    """Return the number of records that an application has processed."""
    return int(sum(of_thread["process-total"] for of_thread in app.metrics().values()))


def restore(app: KafkaStreams, records: int) -> dict[str, float]:
    """Restore the store and close the application. Returns the figures."""
    times: list[float] = []
    counts: list[int] = []

    def progressed(progress: RestoreProgress) -> None:
        times.append(time.monotonic())
        counts.append(progress.restored)

    app.set_restore_listener(progressed)
    app.start()
    app.wait_until_running(_START_TIMEOUT_S)
    store, found = app.store(STORE), 0
    for number in range(0, records, max(1, records // _SAMPLES)):
        key = f"k{number:09d}"
        value = store.get(key)
        found += value is not None and value.startswith(key.encode())
    app.close()
    return {"restored": counts[-1], "found": found, "seconds": times[-1] - times[0]}


def serve(app: KafkaStreams) -> dict[str, float]:
    """Run until the end of standard input."""
    app.start()
    app.wait_until_running(_START_TIMEOUT_S)
    report({"event": "running"})
    sys.stdin.read()
    app.close()
    _check(app)
    return {}


def _check(app: KafkaStreams) -> None:
    if app.failure is not None:
        raise app.failure


def report(event: Mapping[str, object]) -> None:
    """Print an event."""
    print(json.dumps(event), flush=True)


def main() -> None:
    """Run the row of the command line."""
    pairs = dict(word.split("=", 1) for word in sys.argv[1:])
    row = {key: pairs.pop(key) for key in OF_THE_ROW}
    records, warm_up = int(row["records"]), int(row["warm.up"])
    if warm_up > 0:
        other = {**row, "output": row["output"] + "-warm-up"}
        process(open_application(other, {**pairs, "application.id": pairs["application.id"] + "-warm-up"}), warm_up)
    app = open_application(row, pairs)
    if row["row"] == "restore":
        figures = restore(app, records)
    else:
        figures = process(app, records) if records > 0 else serve(app)
    report({"event": "done", **figures})
    sys.stdin.read()


if __name__ == "__main__":
    main()
