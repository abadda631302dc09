"""CPU time, memory and descriptors of processes, read from /proc. Knows no broker."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class CpuTime:
    """User and system time, in seconds (resolution 10 ms)."""

    user_s: float
    system_s: float

    def since(self, before: CpuTime) -> CpuTime:
        """Return the CPU time used since `before`."""
        return CpuTime(self.user_s - before.user_s, self.system_s - before.system_s)


def cpu_time(pid: int) -> CpuTime:
    """Return the CPU time of all threads of a process, including ended ones."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return CpuTime(int(fields[11]) / _TICKS, int(fields[12]) / _TICKS)


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes, without page cache."""
    return _kilobytes(pid, "VmRSS") * 1024


def proportional_bytes(pid: int) -> int:
    """Return the proportional set size in bytes: a page that processes share counts in part."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = re.search(r"^Pss:\s+(\d+) kB", rollup, re.M)
    return int(found[1]) * 1024 if found else 0


def open_descriptors(pid: int) -> int:
    """Return the number of open files and sockets of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def peak_resident_bytes(pid: int) -> int:
    """Return the peak resident memory of a process in bytes, 0 if the process has ended."""
    try:
        return _kilobytes(pid, "VmHWM") * 1024
    except OSError:
        return 0


def program(pid: int) -> str:
    """Return the name of a process's program, empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process ended meanwhile
            children.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    found, waiting = list[int](), [pid]
    while waiting:
        of_one = children.get(waiting.pop(), [])
        found += of_one
        waiting += of_one
    return found


def _kilobytes(pid: int, field: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB", status, re.M)
    return int(found[1]) if found else 0


def congestion_control() -> str:
    """Return the system's TCP congestion control algorithm."""
    path = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    return path.read_text().strip() if path.exists() else "unknown"
