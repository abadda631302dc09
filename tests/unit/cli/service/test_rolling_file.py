from __future__ import annotations

import logging
from pathlib import Path

from pybroker.cli.service.rolling_file import RollingFile


def test_a_file_is_rolled_by_size_and_reopened_where_it_was_moved(tmp_path: Path) -> None:
    path = tmp_path / "broker.log"
    handler = RollingFile(path, maxBytes=60, backupCount=1)
    for _ in range(9):
        handler.emit(logging.makeLogRecord({"msg": "it is so"}))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["broker.log", "broker.log.1"]
    path.rename(tmp_path / "moved")
    handler.reopen()
    handler.emit(logging.makeLogRecord({"msg": "it is so"}))
    handler.close()
    assert path.read_text() == "it is so\n"
