"""Group members as processes, and an audit of their output: all records read, and one owner for each partition."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from tests.support.conditions import wait_until
from tests.support.repository import ROOT

END_SECONDS = 60
_MOMENT_NS = 1_000_000
"""Tolerated overlap. Members write a revocation before they notify the coordinator: only scheduling causes overlaps."""


@dataclass
class Tenure:
    """The time during which a member owned a partition, in nanoseconds of the monotonic clock."""

    begun: int
    ended: int | None = None


@dataclass
class Member:
    """A member's process and its output so far."""

    process: subprocess.Popen[str]
    complaints: tempfile._TemporaryFileWrapper[bytes]
    """The member's standard error, for the message of a failing test."""
    records: Counter[tuple[int, int]] = field(default_factory=Counter)
    tenures: dict[int, list[Tenure]] = field(default_factory=dict)
    stopped: bool = False
    reader: threading.Thread | None = None

    @classmethod
    def start(cls, client: str, servers: str, topic: str, group: str) -> Self:
        """Start a member. A thread reads its output."""
        words = [sys.executable, "-m", "tests.support.member_program", client, servers, topic, group]
        complaints = tempfile.NamedTemporaryFile()  # noqa: SIM115 (it lives as long as the member)
        process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=complaints, text=True)
        member = cls(process, complaints)
        member.reader = threading.Thread(target=member._read)
        member.reader.start()
        return member

    def kill(self) -> None:
        """Send SIGKILL. The ownership of its partitions ends here."""
        self._let_go(time.monotonic_ns())
        self.process.kill()
        self.process.wait(END_SECONDS)
        self._read_to_the_end(time.monotonic_ns())

    def stop(self) -> None:
        """Send SIGSTOP. A stopped member cannot report a revocation, so its ownership ends here."""
        self.process.send_signal(signal.SIGSTOP)
        self.stopped = True
        self._let_go(time.monotonic_ns())

    def go_on(self) -> None:
        """Send SIGCONT."""
        self.stopped = False
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Send SIGTERM, so that it leaves the group, and SIGKILL if it does not exit in time.

        Not every client reports a revocation when it leaves: the partitions of the others have new owners before the
        process has exited. So the signal ends ownership without a report.
        """
        self.go_on()
        signalled = time.monotonic_ns()
        self.process.terminate()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(END_SECONDS)
        self._read_to_the_end(signalled)

    def holds(self) -> set[int]:
        """Return the partitions that the member owns."""
        return {p for p, tenures in list(self.tenures.items()) if tenures and tenures[-1].ended is None}

    def last_words(self) -> str:
        """Return the last 40 lines of the member's standard error."""
        return "\n".join(Path(self.complaints.name).read_text(errors="replace").splitlines()[-40:])

    def _read_to_the_end(self, ended: int) -> None:
        if self.reader is not None:
            self.reader.join(END_SECONDS)
        self.complaints.close()
        self._let_go(ended)

    def _let_go(self, ended: int) -> None:
        for tenures in self.tenures.values():
            if tenures[-1].ended is None:
                tenures[-1].ended = max(ended, tenures[-1].begun)

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                what, *rest = line.split()
                if what == "r":
                    self.records[int(rest[0]), int(rest[1])] += 1
                elif what in "+-":
                    self._note(what, int(rest[0]), [int(p) for p in rest[1].split(",")])

    def _note(self, what: str, moment: int, partitions: Sequence[int]) -> None:
        for partition in partitions:
            tenures = self.tenures.setdefault(partition, [])
            if what == "+":
                if not tenures or tenures[-1].ended is not None:
                    tenures.append(Tenure(moment))
            elif tenures and tenures[-1].ended is None:
                tenures[-1].ended = moment


def seen(members: Sequence[Member]) -> Counter[tuple[int, int]]:
    """Return how often all members together read each (partition, offset)."""
    total: Counter[tuple[int, int]] = Counter()
    for member in members:
        total.update(dict(member.records))
    return total


def check_one_owner_at_a_time(members: Sequence[Member]) -> None:
    """Assert that no two members owned a partition at the same time."""
    for partition in {p for member in members for p in member.tenures}:
        spans = sorted(
            (t.begun, t.ended if t.ended is not None else 1 << 63, number)
            for number, member in enumerate(members)
            for t in member.tenures.get(partition, ())
        )
        for (begun, ended, one), (next_begun, _, other) in itertools.pairwise(spans):
            overlap = ended - next_begun
            assert one == other or overlap < _MOMENT_NS, (
                f"partition {partition} was member {one}'s from {begun} to {ended} "
                f"and member {other}'s from {next_begun}: {overlap / 1e6:.1f} ms together"
            )


def wait_for_sharing(members: Sequence[Member], partitions: int, within: float = 60) -> None:
    """Wait until the members own all partitions and each member owns at least one."""

    def is_shared() -> bool:
        held = sorted(p for m in members for p in m.holds())
        return held == list(range(partitions)) and all(m.holds() for m in members)

    def situation() -> str:
        lines = [f"{sorted(m.holds())} is held by a member that said last:\n{m.last_words()}" for m in members]
        return f"{len(members)} members share {partitions} partitions:\n" + "\n".join(lines)

    wait_until(is_shared, within=within, what=situation)
