from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from uuid import UUID

import pytest

from pybroker.streams.errors import DirectoryLockedError, StreamsError
from pybroker.streams.state import builders
from pybroker.streams.state.directory import PROCESS_FILE, StateDirectory, default_state_dir
from tests.support.persistent_stores import opened
from tests.support.repository import ROOT


def test_default_is_kafka_streams_in_the_temporary_directory() -> None:
    assert default_state_dir().name == "kafka-streams"


def test_process_id_survives_a_restart(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    process_id = directory.process_id
    directory.close()
    content = json.loads((tmp_path / "app" / PROCESS_FILE).read_text())
    assert content == {"processId": str(process_id), "version": 1}
    directory = StateDirectory(tmp_path, "app")
    assert directory.process_id == process_id
    directory.close()


def test_damaged_process_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / PROCESS_FILE).write_text('{"processId": "5')
    directory = StateDirectory(tmp_path, "app")
    assert isinstance(directory.process_id, UUID)
    directory.close()


def test_second_instance_is_rejected_until_the_first_closes(tmp_path: Path) -> None:
    first = StateDirectory(tmp_path, "app")
    with pytest.raises(DirectoryLockedError, match=f"state directory {tmp_path}/app is locked: another instance"):
        StateDirectory(tmp_path, "app")
    StateDirectory(tmp_path, "other").close()
    first.close()
    StateDirectory(tmp_path, "app").close()


def test_another_process_excludes_this_one(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from pybroker.streams.state.directory import StateDirectory\n"
        "directory = StateDirectory(Path(sys.argv[1]), 'app'); print('locked', flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(DirectoryLockedError):
            StateDirectory(tmp_path, "app")
        process.kill()
    StateDirectory(tmp_path, "app").close()


def test_task_is_locked_once_by_all_threads(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    assert directory.lock("0_1") == tmp_path / "app" / "0_1"
    failures: list[Exception] = []

    def lock() -> None:
        try:
            directory.lock("0_1")
        except DirectoryLockedError as error:
            failures.append(error)

    thread = threading.Thread(target=lock)
    thread.start()
    thread.join()
    assert len(failures) == 1
    directory.unlock("0_1")
    directory.lock("0_1")
    directory.close()


def test_tasks_are_listed_in_order_with_their_committed_offsets(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    for task_id in ("0_10", "0_2", "global"):
        path = directory.lock(task_id)
        store, _ = opened(builders.key_value_store("s"), path)
        store.put("k", "v")
        store.commit(5)
        store.close()
        new, _ = opened(builders.key_value_store("new"), path)
        new.close()
        directory.unlock(task_id)
    assert directory.task_ids() == ["0_2", "0_10"]
    assert directory.committed_offsets("0_2") == {"s": 5}
    assert directory.committed_offsets("0_3") == {}
    directory.wipe("0_2")
    directory.wipe("0_2")
    assert directory.committed_offsets("0_2") == {}
    directory.close()


def test_obsolete_directories_of_unlocked_tasks_are_removed(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    for task_id in ("0_0", "0_1", "0_2"):
        directory.lock(task_id)
        os.utime(tmp_path / "app" / task_id, (1, 1))
    directory.unlock("0_1")
    directory.unlock("0_2")
    os.utime(tmp_path / "app" / "0_2", (100, 100))
    assert directory.remove_obsolete(now_ms=60_000, delay_ms=10_000) == ["0_1"]
    assert directory.task_ids() == ["0_0", "0_2"]
    directory.close()


def test_clean_keeps_the_process_id_and_rejects_a_running_task(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "app")
    directory.lock("0_0")
    with pytest.raises(DirectoryLockedError):
        directory.clean()
    directory.unlock("0_0")
    directory.clean()
    assert (directory.task_ids(), (tmp_path / "app" / PROCESS_FILE).exists()) == ([], True)
    directory.close()


def test_directory_that_cannot_be_created_names_path_reason_and_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StreamsError, match=r"cannot create .*/file/app: Not a directory: check state\.dir"):
        StateDirectory(tmp_path / "file", "app")
