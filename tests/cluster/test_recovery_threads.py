"""How many logs recover at once: `num.recovery.threads.per.data.dir`, seen from outside a broker that is starting."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.gates import Gate
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

TOPIC = "t"
PARTITIONS = 10
WITHIN_SECONDS = 60
# A log with so much to recover is handed to a thread alone.
UNREAD_BYTES = 16_000_000
NO_EPOCHS = b"0\n0\n"


def crashed(broker: BrokerProcess) -> None:
    """Have it killed with a topic whose logs all have much to recover: zeros behind one batch."""
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        topic = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1}
        wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
        for index in range(PARTITIONS):
            assert produced(wire.query(produce(TOPIC, batch_of(b"v"), partition=index))).error_code == 0
    broker.kill()


def wait_for_recoveries(gates: Mapping[Path, Sequence[Gate]], threads: int) -> None:
    """Wait until so many recoveries are under way in each directory, or all that are left, and see that no more are."""
    due = {directory: min(threads, len(closed)) for directory, closed in gates.items()}

    def in_progress() -> dict[Path, int]:
        return {directory: sum(gate.is_occupied() for gate in closed) for directory, closed in gates.items()}

    wait_until(
        lambda: all(in_progress()[directory] >= count for directory, count in due.items()),
        within=WITHIN_SECONDS,
        what=lambda: f"recoveries under way: {in_progress()}, of {due}",
    )
    assert in_progress() == due


@pytest.mark.parametrize("threads", [1, 3])
def test_so_many_threads_recover_logs_at_once_in_each_directory(
    make_broker: Callable[..., BrokerProcess], tmp_path: Path, threads: int
) -> None:
    directories = [tmp_path / "data", tmp_path / "other"]
    paths = ",".join(str(directory) for directory in directories)
    broker = make_broker(log_dirs=paths, num_recovery_threads_per_data_dir=str(threads))
    crashed(broker)
    gates: dict[Path, list[Gate]] = {directory: [] for directory in directories}
    for directory, closed in gates.items():
        for log in directory.glob(f"{TOPIC}-*"):
            os.truncate(log / f"{0:020}.log", UNREAD_BYTES)
            closed.append(Gate(log / "leader-epoch-checkpoint"))
    assert [len(closed) for closed in gates.values()] == [PARTITIONS // 2] * 2

    with ExitStack() as stack:
        starting = stack.enter_context(ThreadPoolExecutor(1)).submit(broker.start)
        for gate in (gate for closed in gates.values() for gate in closed):
            stack.callback(gate.close)
        while any(gates.values()):
            wait_for_recoveries(gates, threads)
            for closed in gates.values():
                first = next(gate for gate in closed if gate.is_occupied())
                first.let_through(NO_EPOCHS)
                closed.remove(first)
        starting.result()
    with Wire(broker.bootstrap_servers) as wire:
        responses = [fetched(wire.query(fetch(TOPIC, partitions=(index,)))) for index in range(PARTITIONS)]
        assert [(response.error_code, response.high_watermark) for response in responses] == [(0, 1)] * PARTITIONS
