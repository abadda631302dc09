"""A driver that is killed by SIGKILL at each step of a batch, and started anew from its checkpoint: nothing is lost or
there twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pybroker.testing import Broker
from tests.support import faulty_sink
from tests.support.repository import ROOT
from tests.support.stamped import audited, send_stamped

pytestmark = [pytest.mark.java, pytest.mark.process]

COUNT = 3_000
WITHIN = 280
CASES = [
    (exactly_once, fault)
    for exactly_once in ("ledger", "transactions")
    for fault in faulty_sink.DRIVER_FAULTS
    if (exactly_once, fault) != ("ledger", "kill driver in commit")
]


def drive(arguments: list[str], log: Path) -> int:
    """Run the driver to its end; its exit status, below 0 for a signal."""
    command = [sys.executable, "-m", "tests.support.driver_program", *arguments]
    with log.open("ab") as output:  # no pipe: what outlives a driver that was killed would keep it open
        ran = subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=False, timeout=WITHIN)
    return ran.returncode


@pytest.mark.parametrize(("exactly_once", "fault"), CASES)
def test_a_driver_that_is_killed_loses_and_doubles_nothing(
    broker: Broker, make_topic: Callable[..., str], tmp_path: Path, exactly_once: str, fault: str
) -> None:
    servers, partitions = broker.bootstrap_servers, faulty_sink.TASKS
    source, target = make_topic(partitions), make_topic(partitions)
    expected = send_stamped(servers, source, range(partitions), COUNT)
    committed, log = exactly_once == "transactions", tmp_path / "log"
    arguments = [servers, source, target, str(tmp_path), exactly_once]
    assert drive([*arguments, fault], log) == -signal.SIGKILL, log.read_text()[-4000:]
    assert (tmp_path / "happened").exists()
    assert (tmp_path / "checkpoint" / "offsets" / "0").exists()
    assert not (tmp_path / "checkpoint" / "commits" / "0").exists()
    if committed and fault in ("kill driver before", "kill driver during", "kill driver after"):
        assert audited(servers, target, committed=True).records == 0
    assert audited(servers, target).records > 0
    expected += send_stamped(servers, source, range(partitions), COUNT, producer=2)
    assert drive(arguments, log) == 0, log.read_text()[-4000:]
    report = audited(servers, target, expected, committed=committed)
    assert report.is_exactly_once, report.as_table()
    assert (report.reordered, report.records) == (0, 2 * partitions * COUNT), report.as_table()
