from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.cli.cluster_remote import endpoint_lines
from pybroker.cli.main import main
from pybroker.client.administration.topics import BrokerDescription
from pybroker.testing import Broker


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def test_nodes_are_listed_as_by_kafkas_tool() -> None:
    nodes = [BrokerDescription(3, "h", 9094, None, fenced=True), BrokerDescription(1, "longer", 9092, "r1")]
    assert endpoint_lines(nodes, of_controllers=False) == [
        "ID         HOST   PORT       RACK STATE      ENDPOINT_TYPE  ",
        "1          longer 9092       r1 unfenced   broker         ",
        "3          h      9094       null fenced     broker         ",
    ]
    assert endpoint_lines(nodes[1:], of_controllers=True)[1] == "1          longer 9092       r1 controller     "


def test_a_cluster_is_asked_who_it_is(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "cluster-id", "-b", server]) == 0
    assert capsys.readouterr().out.startswith("Cluster ID: ")
    assert main(["cluster", "list-endpoints", "-b", server, "--include-fenced-brokers"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-2:] == ["unfenced", "broker"]
    assert main(["cluster", "unregister", "-b", server, "--id", "77"]) == 1
    assert "BrokerIdNotRegisteredException: Broker ID 77 is not currently registered" in capsys.readouterr().err


def test_fenced_brokers_are_not_asked_of_controllers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "list-endpoints", "-C", "127.0.0.1:1", "--include-fenced-brokers"]) == 1
    assert "only supported with --bootstrap-server option" in capsys.readouterr().err
