"""An executor that is killed in the middle of a batch: one program with executors of its own, and its audit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.testing import Broker
from tests.support.repository import ROOT
from tests.support.stamped import audited, send_stamped

pytestmark = [pytest.mark.java, pytest.mark.process]

COUNT = 5_000


@pytest.mark.parametrize("exactly_once", ["ledger", "transactions"])
def test_an_executor_that_is_killed_loses_and_doubles_nothing(
    broker: Broker, tmp_path: Path, exactly_once: str
) -> None:
    servers, source, target = broker.bootstrap_servers, f"in-{tmp_path.name}", f"out-{tmp_path.name}"
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(source, 2), NewTopic(target, 2)])
        admin.wait_for_leaders(target)
    expected = send_stamped(servers, source, [0, 1], COUNT)
    rows = [
        {"topic": target, "partition": e.partition, "producer": e.producer, "acknowledged": e.acknowledged, "failed": 0}
        for e in expected
    ]
    (tmp_path / "load.json").write_text(json.dumps({"acknowledged": rows}))
    command = [sys.executable, "-m", "tests.support.executor_killer", servers, source, target, str(tmp_path)]
    ran = subprocess.run(
        [*command, str(tmp_path / "load.json"), exactly_once],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    assert f"{2 * COUNT:,} records: 0 lost, 0 duplicated, 0 reordered: every record is there once" in ran.stdout
    assert (tmp_path / "killed").exists()
    report = audited(servers, target, expected, committed=exactly_once == "transactions")
    assert (report.is_exactly_once, report.records) == (True, 2 * COUNT), report.as_table()
