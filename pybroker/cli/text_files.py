"""Files that a user names in an option and that hold text.

Owns the message about an unreadable file. Must not know the meaning of the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError

if TYPE_CHECKING:
    from pathlib import Path


def read_text(path: Path) -> str:
    """Return a file's text. Raises CommandError with its path where it cannot be read, or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"cannot read {path}: not UTF-8 at byte {error.start}") from None
