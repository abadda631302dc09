"""The demo, with fewer records: what it prints, and that it leaves nothing behind, however it ends."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.repository import ROOT

pytestmark = pytest.mark.process

PRODUCED = re.compile(
    r"^20000 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, [\d.]+ ms max latency, "
    r"\d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\.$",
    re.M,
)
CONSUMED = re.compile(r"^start\.time, end\.time, .*\n\d{4}-\d\d-\d\d [\d:]+, .*, 20000, .*$", re.M)


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The demo's module, for 20,000 records, with its data below the test's own folder."""
    spec = importlib.util.spec_from_file_location("demo", ROOT / "bench" / "pybench" / "demo.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RECORDS", 20_000)
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(module.signal, "signal", lambda *_: None)
    return module


def test_the_demo_prints_kafkas_figures_and_cleans_up(
    demo: ModuleType, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert demo.main() == 0
    printed = capfd.readouterr().out
    assert PRODUCED.search(printed), printed
    assert CONSUMED.search(printed), printed
    assert re.search(r"^broker \d+ stopped with status 0$", printed, re.M)
    assert re.search(rf"^the data was in {re.escape(str(tmp_path))}/\S+ \(\d+ MiB\) and is removed$", printed, re.M)
    assert list(tmp_path.iterdir()) == []


def fail_at(program: str) -> Callable[..., None]:
    """A step that fails instead of running one of the programs."""

    def step(name: str, *arguments: str) -> None:
        if name == program:
            raise KeyboardInterrupt

    return step


@pytest.mark.parametrize("program", ["pybroker", "pybench"])
def test_a_demo_that_is_interrupted_cleans_up_too(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str
) -> None:
    monkeypatch.setattr(demo, "step", fail_at(program))
    assert demo.main() == 130
    assert list(tmp_path.iterdir()) == []
