"""Small files that are replaced atomically: after a crash a file has the old text or the new one, never a part.

Owns the order write, fdatasync, rename, sync of the directory. Must not know what is in the files.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Replace the content of `path` durably and atomically; raises OSError with a file name, leaving no part behind."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fdatasync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise named(error, path) from None
    sync_directory(path.parent)


def named(error: OSError, path: Path) -> OSError:
    """Return the error with `path` as its file name if it has none: errors of an open file have none."""
    if error.filename is None:
        error.filename = str(path)
    return error


def sync_directory(path: Path) -> None:
    """Sync the directory's entries to the device; raises OSError."""
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    except OSError as error:
        raise named(error, path) from None
    finally:
        os.close(directory)
