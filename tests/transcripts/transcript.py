"""Transcripts: what is said to a machine, and word for word what it answers.

A transcript is a text of paragraphs. A paragraph is a command, a line `----`, and what came of it; one that starts with
`#` is a comment and stays as it is. `--rewrite` writes the answers anew, to be read before they are committed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

RULE = "----"


def play(script: str, report: Callable[[str], str]) -> str:
    """Say every command of a transcript and return the transcript of what happened."""
    paragraphs = []
    for paragraph in script.strip().split("\n\n"):
        if paragraph.startswith("#"):
            paragraphs.append(paragraph)
        else:
            command = paragraph.split(f"\n{RULE}")[0].strip()
            paragraphs.append("\n".join([command, RULE, *report(command).splitlines()]))
    return "\n\n".join(paragraphs) + "\n"


def check_transcript(path: Path, report: Callable[[str], str], *, rewrite: bool) -> None:
    """Compare a transcript with what happens, or write it anew."""
    script = path.read_text(encoding="utf-8")
    happened = play(script, report)
    if rewrite:
        path.write_text(happened, encoding="utf-8")
        return
    assert happened == script
