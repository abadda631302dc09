"""The machine that the doctor checks, read from the kernel's files.

Owns the reading of kernel settings and sockets. Must not evaluate them.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_LISTENS = "0A"


class Machine(NamedTuple):
    """A machine, identified by the root of its file system. Tests use another root than `/`."""

    root: Path = Path("/")

    def text(self, path: str) -> str | None:
        """Return the content of a kernel file without surrounding blanks; None where the file does not exist."""
        try:
            return (self.root / path).read_text(encoding="ascii", errors="replace").strip()
        except OSError:
            return None

    def number(self, path: str) -> int | None:
        """Return the number in a kernel file; None if it contains none."""
        text = self.text(path)
        return int(text) if text is not None and text.lstrip("-").isdecimal() else None

    def listener_of(self, port: int) -> str | None:
        """Return the process that listens on a TCP port, as far as this user can see it; None without one."""
        inodes = set()
        for table in ("proc/net/tcp", "proc/net/tcp6"):
            for line in (self.text(table) or "").splitlines()[1:]:
                fields = line.split()
                if len(fields) > 9 and fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
        if not inodes:
            return None
        for process in sorted((self.root / "proc").glob("[0-9]*")):
            if self._holds(process, inodes):
                name = self.text(f"proc/{process.name}/comm") or "?"
                return f"process {process.name} ({name})"
        return "a process of another user"

    def file_system(self, path: Path) -> str:
        """Return the type of a path's file system; empty where it is unknown."""
        best, kind = "", ""
        for line in (self.text("proc/mounts") or "").splitlines():
            _, place, this_kind, *_ = [*line.split(), "", "", ""]
            inside = place == "/" or path == Path(place) or Path(place) in path.parents
            if inside and len(place) >= len(best):
                best, kind = place, this_kind
        return kind

    @staticmethod
    def _holds(process: Path, inodes: set[str]) -> bool:
        try:
            return any(str(one.readlink()) in inodes for one in (process / "fd").iterdir())
        except OSError:
            return False
