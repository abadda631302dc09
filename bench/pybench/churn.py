"""A soak test of churn: clients, topics and groups come and go, and the broker's memory and descriptors stay flat.

`python -m pybench.churn --seconds 600` starts its own broker. Workers create a topic, produce, consume it as the only
member of a group of the classic or the consumer protocol, delete both and close every connection. The state of a broker
is bounded, as `BOUNDED` lists and each run prints. So after `--settled-after` seconds, memory may grow by at most
`--allowed-mib`, and open descriptors by at most as many as the workers use at once. The exit status is 1 if either
grows more. Caches of look-ups fill up over some thousand rounds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pybench.peers.pybroker import Pybroker
from pybench.process import open_descriptors, resident_bytes
from pybroker.client import Admin, ClientError, Consumer, NewTopic, Producer

_RECORDS, _RECORD = 200, bytes(100)
_PATIENCE_S = 60.0
_DESCRIPTORS_OF_A_WORKER = 32
"""The connections of three clients, and the files of two partitions with indexes, before their deletion."""

BOUNDED = {
    "looks at timers": "twice the live ones of a coordinator's partition, and 64",
    "partitions of group and transactional ids": "1,024 look-ups",
    "hashes of topics in KIP-848 groups": "the topics that there are",
    "fetch sessions": "max.incremental.fetch.session.cache.slots",
    "requests in work": "queued.max.requests, one of a connection",
    "bytes of requests and of unread answers": "queued.max.request.bytes, queued.max.response.bytes",
    "idle connections": "connections.max.idle.ms, max.connections",
    "idempotent producers of a partition": "producer.id.expiration.ms, and the partition's life",
    "batches of the metadata log in memory": "256 KiB at a sole voter, 8 MiB among several",
    "the metadata log": "metadata.log.max.record.bytes.between.snapshots, metadata.max.retention.bytes",
}
"""The state of a broker that grows with churn, and its bounds."""


class Churn:
    """Workers that repeat rounds until they are stopped."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._ends = threading.Event()
        self.rounds: list[int] = []

    def work(self, worker: int) -> None:
        """Repeat rounds. The first failure ends all workers."""
        number = 0
        try:
            while not self._ends.is_set():
                self._round(f"churn-{worker}-{number}", "classic" if number % 2 else "consumer")
                number += 1
                self.rounds.append(worker)
        finally:
            self._ends.set()

    def end(self) -> None:
        """Stop each worker after its current round."""
        self._ends.set()

    def wait(self, seconds: float) -> bool:
        """Wait `seconds`, or until a worker fails. Returns whether one failed."""
        return self._ends.wait(seconds)

    def _round(self, name: str, protocol: str) -> None:
        with Admin(self._server) as admin:
            admin.create_topics([NewTopic(name, 2, 1)])
            admin.wait_for_leaders(name)
        with Producer(self._server) as producer:
            for number in range(_RECORDS):
                producer.send(name, _RECORD, partition=number % 2)
            producer.flush()
        settings = {"group.id": name, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        with Consumer(self._server, settings) as consumer:
            consumer.subscribe([name])
            deadline, read = time.monotonic() + _PATIENCE_S, 0
            while read < _RECORDS:
                read += len(consumer.poll(1.0))
                if time.monotonic() > deadline:
                    raise ClientError(f"{name}: {read} of {_RECORDS} records after {_PATIENCE_S:.0f} s")
            consumer.commit()
        with Admin(self._server) as admin:
            refused = [error for error in admin.delete_groups([name]).values() if error is not None]
            if refused:
                raise refused[0]
            admin.delete_topics([name])


def main(arguments: list[str] | None = None) -> int:
    """Run the soak test. Returns 0 if memory stayed flat."""
    parser = argparse.ArgumentParser(prog="python -m pybench.churn", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, metavar="S", help="how long (default: 600)")
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="clients at a time (default: 4)")
    parser.add_argument(
        "--allowed-mib", type=float, default=5.0, metavar="MIB", help="growth after it has settled (default: 5)"
    )
    parser.add_argument(
        "--settled-after", type=float, default=60.0, metavar="S", help="when growth begins to count (default: 60)"
    )
    options = parser.parse_args(arguments)
    for what, bound in BOUNDED.items():
        print(f"bounded: {what}: {bound}")
    with tempfile.TemporaryDirectory(prefix="churn-") as folder, Pybroker(Path(folder) / "data") as node:
        churn = Churn(node.bootstrap_servers)
        with ThreadPoolExecutor(options.workers) as pool:
            works = [pool.submit(churn.work, worker) for worker in range(options.workers)]
            seen = _watch(churn, node.pid, options.seconds)
            churn.end()
    for failure in filter(None, (work.exception() for work in works)):
        print(f"churn failed: {failure!r}", file=sys.stderr)
        return 2
    return judge(seen, options.settled_after, options.allowed_mib, _DESCRIPTORS_OF_A_WORKER * options.workers)


@dataclass(frozen=True, slots=True)
class Seen:
    """The memory and descriptors of the broker at one time."""

    at_s: float
    mib: float
    descriptors: int


def _watch(churn: Churn, pid: int, seconds: float) -> list[Seen]:
    """Sample the broker every five seconds."""
    begun = time.monotonic()
    seen: list[Seen] = []
    while (now := time.monotonic() - begun) < seconds and not churn.wait(5.0):
        it = Seen(now, resident_bytes(pid) / 2**20, open_descriptors(pid))
        seen.append(it)
        print(
            f"{now:5.0f} s {len(churn.rounds):7,} rounds {it.mib:7.1f} MiB {it.descriptors:5} descriptors", flush=True
        )
    return seen


def judge(seen: Sequence[Seen], settled_s: float, allowed_mib: float, allowed_descriptors: int) -> int:
    """Compare the maximum of the samples after `settled_s` with the first of them, and print the result."""
    after = [it for it in seen if it.at_s >= settled_s]
    if len(after) < 2:
        print(f"too short: nothing is judged before {settled_s:g} s are over", file=sys.stderr)
        return 2
    first, mib, descriptors = after[0], max(it.mib for it in after), max(it.descriptors for it in after)
    is_flat = mib - first.mib <= allowed_mib and descriptors - first.descriptors <= allowed_descriptors
    print(
        f"{'flat' if is_flat else 'GROWING'}: {first.mib:.1f} MiB and {first.descriptors} descriptors after "
        f"{settled_s:g} s, at most {mib:.1f} MiB and {descriptors} later, allowed +{allowed_mib:g} MiB and "
        f"+{allowed_descriptors}"
    )
    return 0 if is_flat else 1


if __name__ == "__main__":
    sys.exit(main())
