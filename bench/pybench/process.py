"""What a process has used and holds, read from /proc. Knows no broker."""

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
        """What was used after `before` was read."""
        return CpuTime(self.user_s - before.user_s, self.system_s - before.system_s)


def cpu_time(pid: int) -> CpuTime:
    """What all threads of a process have used, also of those that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return CpuTime(int(fields[11]) / _TICKS, int(fields[12]) / _TICKS)


def resident_bytes(pid: int) -> int:
    """Resident memory of a process, page cache not counted."""
    return _kilobytes(pid, "VmRSS") * 1024


def open_descriptors(pid: int) -> int:
    """Files and sockets that a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def peak_resident_bytes(pid: int) -> int:
    """The most that it ever had resident; 0 when it is gone."""
    try:
        return _kilobytes(pid, "VmHWM") * 1024
    except OSError:
        return 0


def program(pid: int) -> str:
    """The name of what a process runs; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
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
    """The system's TCP congestion control."""
    path = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    return path.read_text().strip() if path.exists() else "unknown"
