"""A soak of churn: clients, topics and groups come and go, and the broker's resident memory stays flat.

`python -m pybench.churn --seconds 600` starts a broker of its own. Workers make a topic, produce, read it as the only
member of a group of the classic or the consumer protocol, delete both and close every connection. What a broker keeps
is bounded: dead timers by the live ones, look-up memories by their sizes, unread answers and requests in work by
settings; so after the first minute memory may grow by `--allowed-mib` and no more. Ends with status 1 where it does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pybench.peers.pybroker import Pybroker
from pybench.process import resident_bytes
from pybroker.client import Admin, ClientError, Consumer, NewTopic, Producer

_RECORDS, _RECORD = 200, bytes(100)
_PATIENCE_S = 60.0
_SETTLED_S = 60.0


class Churn:
    """Workers that go round until they are asked to end."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._ends = threading.Event()
        self.rounds: list[int] = []

    def work(self, worker: int) -> None:
        """Go round and round; the first failure ends all."""
        number = 0
        try:
            while not self._ends.is_set():
                self._round(f"churn-{worker}-{number}", "classic" if number % 2 else "consumer")
                number += 1
                self.rounds.append(worker)
        finally:
            self._ends.set()

    def end(self) -> None:
        """Let each worker finish its round."""
        self._ends.set()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until a worker failed; whether one did."""
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
    """Run the soak; 0 where memory stayed flat."""
    parser = argparse.ArgumentParser(prog="python -m pybench.churn", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, metavar="S", help="how long (default: 600)")
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="clients at a time (default: 4)")
    parser.add_argument(
        "--allowed-mib", type=float, default=5.0, metavar="MIB", help="growth after the first minute (default: 5)"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="churn-") as folder, Pybroker(Path(folder) / "data") as node:
        churn = Churn(node.bootstrap_servers)
        with ThreadPoolExecutor(options.workers) as pool:
            works = [pool.submit(churn.work, worker) for worker in range(options.workers)]
            seen = _watch(churn, node.pid, options.seconds)
            churn.end()
    for failure in filter(None, (work.exception() for work in works)):
        print(f"churn failed: {failure!r}", file=sys.stderr)
        return 2
    return _judge(seen, options.allowed_mib)


def _watch(churn: Churn, pid: int, seconds: float) -> list[tuple[float, float]]:
    """Look at the broker's memory every five seconds; returns seconds since the start, and MiB."""
    begun = time.monotonic()
    seen: list[tuple[float, float]] = []
    while (now := time.monotonic() - begun) < seconds and not churn.wait(5.0):
        seen.append((now, resident_bytes(pid) / 2**20))
        print(f"{now:5.0f} s {len(churn.rounds):7,} rounds {seen[-1][1]:7.1f} MiB", flush=True)
    return seen


def _judge(seen: list[tuple[float, float]], allowed_mib: float) -> int:
    """Hold the largest memory after the first minute against that at its end."""
    after = [mib for at, mib in seen if at >= _SETTLED_S]
    if len(after) < 2:
        print("too short: nothing is judged before the first minute is over", file=sys.stderr)
        return 2
    growth = max(after) - after[0]
    verdict = "flat" if growth <= allowed_mib else "GROWING"
    found = f"{after[0]:.1f} MiB after a minute, at most {max(after):.1f} MiB later"
    print(f"{verdict}: {found}, allowed +{allowed_mib:g} MiB")
    return 0 if growth <= allowed_mib else 1


if __name__ == "__main__":
    sys.exit(main())
