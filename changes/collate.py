"""Collates `changes/*.md` into CHANGELOG.md: `python changes/collate.py 0.2.0`.

Owns the form of the changelog. Knows no content: each change brings its own file (`changes/README.md`).
"""

from __future__ import annotations

import datetime
import re
import sys
from collections import defaultdict
from pathlib import Path

CHANGES = Path(__file__).resolve().parent
CHANGELOG = CHANGES.parent / "CHANGELOG.md"
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed", "faster": "Faster"}
FRAGMENT = re.compile(rf"[a-z0-9-]+\.({'|'.join(KINDS)})\.md")
MARK = "<!-- releases, newest first -->\n"


def fragments() -> dict[str, list[Path]]:
    """The waiting changes by kind; raises ValueError for a file whose name says no kind."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(CHANGES.glob("*.md")):
        if path.name == "README.md":
            continue
        match = FRAGMENT.fullmatch(path.name)
        if match is None:
            raise ValueError(f"changes/{path.name}: the name is <slug>.<kind>.md, kind one of {', '.join(KINDS)}")
        found[match[1]].append(path)
    return found


def release(version: str, date: datetime.date, waiting: dict[str, list[Path]]) -> str:
    """The changelog's section for one version."""
    lines = [f"## {version} ({date.isoformat()})", ""]
    for kind, title in KINDS.items():
        if waiting.get(kind):
            items = (" ".join(path.read_text(encoding="utf-8").split()) for path in waiting[kind])
            lines += [f"### {title}", "", *(f"- {item}" for item in items), ""]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write the section of one version, and remove the files that it was made from."""
    if len(arguments) != 1 or not re.fullmatch(r"\d+\.\d+\.\d+", arguments[0]):
        print("usage: make changelog VERSION=x.y.z", file=sys.stderr)
        return 2
    waiting = fragments()
    if not waiting:
        print("there is nothing in changes/ to collate", file=sys.stderr)
        return 1
    head, mark, rest = CHANGELOG.read_text(encoding="utf-8").partition(MARK)
    section = release(arguments[0], datetime.datetime.now(tz=datetime.UTC).date(), waiting)
    CHANGELOG.write_text(f"{head}{mark}\n{section}{rest.lstrip()}", encoding="utf-8")
    for paths in waiting.values():
        for path in paths:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
