from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from pybroker.cli.doctor import JSON, examine
from pybroker.cli.doctor.finding import FAIL, OK, WARN, Finding
from pybroker.cli.doctor.machine import Machine
from pybroker.cli.main import main
from pybroker.storage.log_dirs.meta_properties import MetaProperties, write_meta_properties
from tests.support.json_shapes import shape_fault

KERNEL = {
    "proc/sys/vm/max_map_count": "65530",
    "proc/sys/vm/swappiness": "60",
    "proc/swaps": "Filename Type Size\n/swap file 1\n",
    "proc/sys/net/core/somaxconn": "128",
    "proc/sys/net/core/wmem_max": "4194304",
    "proc/sys/net/core/rmem_max": "1024",
    "proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic",
    "proc/sys/net/ipv4/tcp_congestion_control": "cubic",
    "proc/mounts": "t / tmpfs rw 0 0\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine whose kernel is set so, and that has room."""
    for path, text in KERNEL.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return Machine(tmp_path)


def found(tmp_path: Path, machine: Machine, **given: str) -> dict[str, list[Finding]]:
    """The findings by their checks, of a broker on a free port."""
    texts = {"log.dirs": str(tmp_path / "data"), "listeners": "PLAINTEXT://127.0.0.1:0"}
    texts |= {name.replace("_", "."): text for name, text in given.items()}
    by_check: dict[str, list[Finding]] = {}
    for one in examine(texts, machine):
        by_check.setdefault(one.check, []).append(one)
        assert (one.state == OK) is (one.advice == "")
    return by_check


def test_each_setting_of_the_kernel_is_judged_with_what_to_do(tmp_path: Path, machine: Machine) -> None:
    by_check = found(tmp_path, machine, socket_listen_backlog_size="500")
    states = {check: [one.state for one in ones] for check, ones in by_check.items()}
    assert states["mappings"] == [OK]
    assert states["swapping"] == [WARN]
    assert states["backlog"] == [WARN]
    assert by_check["backlog"][0].advice == "sysctl -w net.core.somaxconn=500"
    assert states["socket buffer"] == [OK, WARN]
    assert states["huge pages"] == [WARN]
    assert states["congestion"] == [OK]
    assert states["file system"] == [WARN]
    refused = found(tmp_path, machine, congestion_control="bbr")["congestion"]
    assert [(one.state, "modprobe tcp_bbr" in one.advice) for one in refused] == [(FAIL, True)]


def test_a_port_that_is_taken_names_who_has_it(tmp_path: Path, machine: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = f"PLAINTEXT://127.0.0.1:{server.getsockname()[1]}"
        (port,) = found(tmp_path, Machine(), listeners=taken)["port PLAINTEXT"]
    assert port.state == FAIL
    assert f"process {os.getpid()} (" in port.words


@pytest.mark.parametrize(
    ("listeners", "advertised", "state", "words"),
    [
        ("PLAINTEXT://127.0.0.1:0", "PLAINTEXT://no.such.host.invalid:9092", FAIL, "is not resolved"),
        ("PLAINTEXT://:0", "PLAINTEXT://127.0.0.1:9092", WARN, "only clients on this machine can reach it"),
        ("PLAINTEXT://127.0.0.1:0", "PLAINTEXT://192.0.2.1:9092", WARN, "not an address of this machine"),
        ("PLAINTEXT://127.0.0.1:0", "PLAINTEXT://127.0.0.1:9092", OK, "resolves to 127.0.0.1"),
        ("PLAINTEXT://:0", "", OK, "advertises the address that a client connected to"),
    ],
)
def test_an_advertised_address_is_resolved(
    tmp_path: Path, machine: Machine, listeners: str, advertised: str, state: str, words: str
) -> None:
    given = {"advertised_listeners": advertised} if advertised else {}
    (address,) = found(tmp_path, machine, listeners=listeners, **given)["address PLAINTEXT"]
    assert (address.state, words in address.words) == (state, True), address


def test_a_log_directory_says_whose_it_is_and_how_it_was_left(tmp_path: Path, machine: Machine) -> None:
    assert "created at the first start" in found(tmp_path, machine)["log directory"][0].words
    data = tmp_path / "data"
    data.mkdir()
    write_meta_properties(data, MetaProperties("c", 1, "JEXY6aqzQY-32P5TStzaFg"))
    (data / "orders-0").mkdir()
    (left,) = found(tmp_path, machine)["log directory"]
    assert (left.state, "the next start recovers the logs of 1 partitions" in left.advice) == (WARN, True)
    (data / ".kafka_cleanshutdown").touch()
    assert "the last shutdown was clean" in found(tmp_path, machine)["log directory"][0].words
    (other,) = found(tmp_path, machine, node_id="2")["log directory"]
    assert (other.state, "belongs to node 1, not 2" in other.words) == (FAIL, True)
    os.utime(data / "meta.properties", (4e9, 4e9))
    assert found(tmp_path, machine)["clock"][0].state == FAIL


def test_a_disk_without_room_is_named(tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result((4096, 4096, 100, 10, 10, 1000, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _path: full)
    by_check = found(tmp_path, machine)
    assert [one.state for one in (*by_check["disk space"], *by_check["inodes"])] == [FAIL, FAIL]


def test_the_command_prints_a_document_and_a_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--override", f"log.dirs={tmp_path}/data", "--override", "listeners=PLAINTEXT://127.0.0.1:0"]
    given += ["--override", "log.segment.bytes=1048576"]  # the disk of a test may be small
    assert main(["doctor", *given, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert shape_fault(document, JSON[""]) is None
    assert document["healthy"] is True
    assert main(["doctor", *given, "--override", "num.io.threads=0", "--problems"]) == 1
    first, advice = capsys.readouterr().out.splitlines()
    assert first == "fail  settings  num.io.threads=0: expected a whole number from 1 to 2147483647"
    assert advice.strip().startswith("correct the setting")
