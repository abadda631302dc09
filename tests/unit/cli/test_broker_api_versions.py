from __future__ import annotations

import json

import pytest

from pybroker.cli.broker_api_versions import _served, _shown
from pybroker.cli.main import main
from pybroker.testing import Broker


def test_every_broker_has_a_paragraph(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        assert main(["broker-api-versions", "--bootstrap-server", broker.bootstrap_servers]) == 0
        first, *lines = capsys.readouterr().out.splitlines()
        assert first == f"{broker.bootstrap_servers} (id: 1 rack: null isFenced: false) -> ("
    assert lines[0].startswith("\tProduce(0): ")
    assert lines[-1] == ")"


def test_a_document_has_every_broker(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        assert main(["broker-api-versions", "--bootstrap-server", broker.bootstrap_servers, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert f"{one['host']}:{one['port']}" == broker.bootstrap_servers
    assert (one["broker"], one["rack"], one["error"]) == (1, None, None)
    produce, *_, last = one["apis"]
    assert produce["name"] == "Produce"
    assert last["key"] > produce["key"] == 0
    assert last["max"] >= last["min"]


@pytest.mark.parametrize(
    ("api", "line"),
    [
        ((3, 0, 99), "Metadata(3): 0 to 99 [usable: 13]"),
        ((46, 0, 0), "ListPartitionReassignments(46): 0 [usable: 0]"),
        ((3, 90, 99), "Metadata(3): 90 to 99 [unusable: node too new]"),
        ((19, 0, 1), "CreateTopics(19): 0 to 1 [unusable: node too old]"),
        ((4000, 1, 2), "UNKNOWN(4000): 1 to 2"),
    ],
)
def test_what_can_be_used_is_what_both_sides_know(api: tuple[int, int, int], line: str) -> None:
    assert _served(*api) == line


def test_what_clients_miss_is_unsupported() -> None:
    lines = _shown({18: (0, 4)}).splitlines()
    assert "\tApiVersions(18): 0 to 4 [usable: 4]," in lines
    assert "\tProduce(0): UNSUPPORTED," in lines
    assert not any("(7)" in line or "(62)" in line for line in lines)
