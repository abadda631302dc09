from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pybroker.cli.doctor.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with two mounts and one setting."""
    (tmp_path / "proc/sys").mkdir(parents=True)
    (tmp_path / "proc/mounts").write_text("/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nx /tmpest nfs4 rw 0 0\n")
    (tmp_path / "proc/sys/some").write_text("7\n")
    return Machine(tmp_path)


def test_numbers_and_file_systems_are_read(machine: Machine) -> None:
    assert (machine.number("proc/sys/some"), machine.number("proc/sys/none")) == (7, None)
    for path, kind in (("/tmp/a", "tmpfs"), ("/tmp", "tmpfs"), ("/tmpest/x", "nfs4"), ("/var", "ext4")):
        assert machine.file_system(Path(path)) == kind


def test_who_listens_on_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert (Machine().listener_of(port) or "").startswith(f"process {os.getpid()} (")
    assert Machine().listener_of(port) is None
