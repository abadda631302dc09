from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pybroker.client.admin import Admin
from pybroker.testing import Broker


def test_the_fixture_is_a_running_broker(broker: Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.list_topics() == []


@pytest.mark.broker(num_partitions=2)
def test_a_mark_gives_it_settings(broker: Broker) -> None:
    assert broker.config.num_partitions == 2


def test_the_plugin_itself_imports_no_broker() -> None:
    code = "import sys, pybroker.testing.plugin; print('pybroker.node' in sys.modules, 'uvloop' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == (
        "False False\n"
    )


def test_a_mark_with_a_setting_that_there_is_not_fails_the_test(tmp_path: Path) -> None:
    (tmp_path / "test_marks.py").write_text(
        "import pytest\n"
        "@pytest.mark.broker(num_partition=7)\n"
        "def test_misspelt(broker): ...\n"
        "@pytest.mark.broker(7)\n"
        "def test_unnamed(broker): ...\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", "test_marks.py"]
    output = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "2 errors" in output
    assert "Unknown broker config name: num.partition; is num.partitions meant?" in output
    assert "broker(7,): settings are given by name, as in broker(num_partitions=3)" in output
