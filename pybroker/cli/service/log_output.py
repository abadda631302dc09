"""Lines of the log: as text or JSON, with Kafka's levels and logger names, to standard error or into a rolling file.

Owns both formats, and the destination of lines. Must not know what is logged.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pybroker.broker.loggers import LOGGERS, LevelChange, kafka_name, level_name
from pybroker.cli.errors import CommandError
from pybroker.cli.service.rolling_file import RollingFile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pybroker.cli.service.rolling_file import RollingFile

FORMATS = ("text", "json")

_PYTHONS = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class TextLines(logging.Formatter):
    """`2026-01-31 12:00:00,123 WARN kafka.network: words`, in local time; an exception takes more lines."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line with Kafka's names. The record is unchanged for other handlers."""
        shown = logging.makeLogRecord(record.__dict__)
        shown.name, shown.levelname = kafka_name(record.name), level_name(record.levelno)
        return super().formatMessage(shown)


class JsonLines(logging.Formatter):
    """One JSON object a line: `time` (UTC, ms), `level`, `logger`, `thread`, `message`, and `exception` if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "time": time.replace("+00:00", "Z"),
            "level": level_name(record.levelno),
            "logger": kafka_name(record.name),
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def open_log(file: Path | None, form: str, *, size: int, kept: int) -> RollingFile | None:
    """Make the root logger write to a file, with `kept` older files of `size` bytes; None: to standard error.

    Returns the handler of the file. Raises CommandError when it cannot be written. In a program with handlers of its
    own, such as one that embeds this command, these are unchanged.
    """
    root = logging.getLogger()
    if file is None and root.handlers:
        return None
    handler: logging.Handler
    rolling = None
    if file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        try:
            handler = rolling = RollingFile(file, maxBytes=size, backupCount=kept, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"--log-file {file}: {error.strerror}") from None
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    if not root.handlers:
        root.setLevel(logging.INFO)
    root.addHandler(handler)
    return rolling


def set_levels(texts: Sequence[str]) -> None:
    """Set the levels of `LEVEL` (of root) and `LOGGER=LEVEL` texts. Raises CommandError for an invalid one."""
    changes = []
    for text in texts:
        name, sign, level = text.rpartition("=")
        word = level.strip().upper()
        changes.append(LevelChange(name.strip() if sign else "root", _PYTHONS.get(word, word)))
    fault = LOGGERS.fault(changes)
    if fault is not None:
        raise CommandError(f"--log-level: {fault.words}", 2)
    LOGGERS.change(changes)
