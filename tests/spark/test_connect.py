"""What runs in a session of Spark Connect: source, sink and audit; a load says by name that it does not."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.testing import Broker
from tests.support import programs
from tests.support.repository import ROOT
from tests.support.stamped import send_stamped

pytestmark = [pytest.mark.java, pytest.mark.process]

COUNT = 500


def test_source_sink_and_audit_run_over_connect_and_a_load_says_that_it_does_not(
    broker: Broker, tmp_path: Path
) -> None:
    if importlib.util.find_spec("grpc_status") is None:
        programs.lacking("Spark Connect's packages are missing: pip install 'pybroker-spark[connect]'")
    servers, source, target = broker.bootstrap_servers, f"in-{tmp_path.name}", f"out-{tmp_path.name}"
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(source, 2), NewTopic(target, 2)])
        admin.wait_for_leaders(target)
    send_stamped(servers, source, [0, 1], COUNT)
    command = [sys.executable, "-m", "tests.support.connect_program", servers, source, target, str(tmp_path / "cp")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=380)
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    response = json.loads(ran.stdout.splitlines()[-1])
    assert (response["rows"], response["filtered"], response["stream"]) == (2 * COUNT, COUNT, "ended")
    assert response["audit"] == "1,000 records: 0 lost, 0 duplicated, 0 reordered: every record is there once"
    assert "startingoffset: there is no such option; did you mean startingOffsets?" in response["refused"]
    assert response["load"].startswith(
        "LoadError: a load runs as a barrier job of RDDs, which Spark Connect does not offer"
    )
