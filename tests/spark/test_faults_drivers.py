"""A driver that is killed by SIGKILL at each step of a batch, and started anew from its checkpoint: nothing is lost or
there twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE

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


PROGRAM = [sys.executable, "-m", "tests.support.driver_program"]


def drive(arguments: list[str], log: Path) -> int:
    """Run the driver to its end; its exit status, below 0 for a signal."""
    with log.open("ab") as output:  # no pipe: what outlives a driver that was killed would keep it open
        ran = subprocess.run(
            [*PROGRAM, *arguments], cwd=ROOT, stdout=output, stderr=output, check=False, timeout=WITHIN
        )
    return ran.returncode


class Successor:
    """One driver for all whose driver was killed: it knows of them what their checkpoints have."""

    def __init__(self, program: subprocess.Popen[str], log: Path) -> None:
        self._program = program
        self._log = log

    def drive(self, arguments: list[str]) -> None:
        """Go on from a checkpoint, to the end of what there is."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        print(json.dumps(arguments), file=self._program.stdin, flush=True)
        assert self._program.stdout.readline() == "copied\n", self._log.read_text()[-4000:]


@pytest.fixture(scope="module")
def successor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Successor]:
    log = tmp_path_factory.mktemp("successor") / "log"
    with (
        log.open("ab") as output,
        subprocess.Popen(PROGRAM, cwd=ROOT, stdin=PIPE, stdout=PIPE, stderr=output, text=True) as program,
    ):
        yield Successor(program, log)
        program.communicate()


@pytest.mark.parametrize(("exactly_once", "fault"), CASES)
def test_a_driver_that_is_killed_loses_and_doubles_nothing(
    broker: Broker,
    successor: Successor,
    make_topic: Callable[..., str],
    tmp_path: Path,
    exactly_once: str,
    fault: str,
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
    successor.drive(arguments)
    report = audited(servers, target, expected, committed=committed)
    assert report.is_exactly_once, report.as_table()
    assert (report.reordered, report.records) == (0, 2 * partitions * COUNT), report.as_table()
