from __future__ import annotations

import subprocess
import sys

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
