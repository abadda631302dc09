"""The wait for brokers that know each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.local_cluster.layout import NodePorts, build_layout
from pybroker.local_cluster.members import wait_members
from pybroker.local_cluster.process import NodeFailedError
from pybroker.testing import Broker


def test_a_broker_that_does_not_know_another_is_named(tmp_path: Path) -> None:
    with Broker() as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])
        first, second = build_layout(tmp_path, [NodePorts(port, 0), NodePorts(port, 0)])
        wait_members([first], {}, 10)
        with pytest.raises(NodeFailedError, match=r"^broker 1 does not know broker 2 after 0 s$"):
            wait_members([first, second], {}, 0)
