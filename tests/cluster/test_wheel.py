"""The wheel: installed where there is nothing else, it runs a broker, and its client produces and consumes.

The wheel is packed from the extension that `make build` has compiled, with what the simulation needs, and no compiler
runs; `make wheel` runs the same tests on the wheel that users get, which PYBROKER_WHEEL names.
"""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from pathlib import Path

import pytest
from packaging.utils import parse_wheel_filename

from pybench.wheel import install_alone, pack_wheel
from tests.support.processes import BrokerProcess

pytestmark = pytest.mark.process

PROGRAM = """
import sys
from pybroker.client import Consumer, Producer

servers = sys.argv[1]
with Producer(servers) as producer:
    for number in range(1000):
        producer.send("orders", str(number).encode())
with Consumer(servers, {"group.id": "wheel", "auto.offset.reset": "earliest"}) as consumer:
    consumer.subscribe(["orders"])
    values = []
    while len(values) < 1000:
        values += [record.value for record in consumer.poll(1.0)]
print(values == [str(number).encode() for number in range(1000)])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel in question."""
    named = os.environ.get("PYBROKER_WHEEL")
    if named:
        return Path(named).resolve()
    profile = os.environ.get("EXTENSION_PROFILE", "release")
    return pack_wheel(tmp_path_factory.mktemp("dist"), profile=profile, features=["simulation"])


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheel and what it asks for."""
    return install_alone(wheel, tmp_path_factory.mktemp("alone") / "environment")


def test_one_wheel_serves_every_python_from_the_oldest_on(wheel: Path) -> None:
    _, _, _, tags = parse_wheel_filename(wheel.name)
    assert {(tag.interpreter, tag.abi) for tag in tags} == {("cp311", "abi3")}
    assert [tag.platform for tag in tags if not tag.platform.startswith(("manylinux", "musllinux"))] == []


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"pybroker"}
    assert {"pybroker/_native.abi3.so", "pybroker/_native.pyi", "pybroker/py.typed"} <= set(names)
    assert [name for name in names if name.endswith((".pyc", ".rs", ".debug"))] == []


def test_a_broker_of_the_wheel_serves_a_client_of_the_wheel(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with BrokerProcess(tmp_path / "data", program=programs / "pybroker") as broker:
        words = [str(programs / "python"), "-I", "-c", PROGRAM, broker.bootstrap_servers]
        ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        assert (ran.stdout, ran.stderr) == ("True\n", "")
        mapped = re.findall(r"\S+/_native\.abi3\.so$", Path(f"/proc/{broker.pid}/maps").read_text(), re.M)
        assert [path for path in mapped if not Path(path).is_relative_to(programs.parent)] == []
        assert mapped
        assert broker.terminate() == 0
