"""The levels of a broker's loggers, by Kafka's own tool and by ours (KIP-412)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.conftest import Server
from tests.support import kafka_tools, programs
from tests.support.wire import Wire

PROGRAM = Path(sys.executable).with_name("pybroker")
LOGGER = "kafka.authorizer.logger"


def change(wire: Wire, name: str, operation: int, value: str | None, broker: str = "1") -> int:
    """The error with which one change of a level is answered."""
    configs = [{"name": name, "config_operation": operation, "value": value}]
    resources = [{"resource_type": 8, "resource_name": broker, "configs": configs}]
    response = wire.call("IncrementalAlterConfigs", 1, resources=resources, validate_only=False)
    return int(response.responses[0].error_code)


def levels(wire: Wire) -> dict[str, str]:
    """The levels of broker 1."""
    requested = [{"resource_type": 8, "resource_name": "1", "configuration_keys": None}]
    (result,) = wire.call("DescribeConfigs", 4, resources=requested).results
    assert result.error_code == 0
    assert {(one.config_source, one.read_only, one.is_sensitive) for one in result.configs} == {(6, False, False)}
    return {one.name: one.value for one in result.configs}


def test_levels_are_set_and_taken_away_and_refused(wire: Wire) -> None:
    before = levels(wire)["kafka"]
    assert change(wire, "kafka", 0, "TRACE") == 0
    assert levels(wire)["kafka"] == "TRACE"
    assert change(wire, "kafka", 1, None) == 0
    assert levels(wire)["kafka"] in (before, levels(wire)["root"])
    assert [
        change(wire, "no.such.logger", 0, "INFO"),
        change(wire, "kafka", 0, "loud"),
        change(wire, "kafka", 2, "INFO"),
        change(wire, "root", 1, None),
        change(wire, "kafka", 0, "INFO", broker="77"),
    ] == [40, 40, 42, 42, 42]


@pytest.mark.java
def test_kafkas_tool_changes_levels_and_ours_prints_the_same(server: Server) -> None:
    programs.kafka_tools()
    at = ("--bootstrap-server", server.bootstrap_servers, "--entity-type", "broker-loggers")

    def both(*requested: str, status: int = 0) -> list[str]:
        theirs = kafka_tools.run("configs", *at, *requested)
        ours = subprocess.run([PROGRAM, "configs", *at, *requested], capture_output=True, text=True, check=False)
        assert (theirs.returncode, ours.returncode) == (status, status), theirs.stderr + ours.stderr
        assert ours.stdout == theirs.stdout
        return theirs.stdout.splitlines()

    one = ("--entity-name", "1")
    assert both("--alter", *one, "--add-config", f"{LOGGER}=DEBUG") == [
        "Completed updating config for broker-logger 1."
    ]
    described = both("--describe", *one)
    assert described[0] == "Dynamic configs for broker-logger 1 are:"
    assert f"  {LOGGER}=DEBUG sensitive=false synonyms={{}}" in described
    both("--alter", *one, "--add-config", "no.such.logger=DEBUG", status=1)
    both("--describe", status=1)
    assert both("--alter", *one, "--delete-config", LOGGER) == ["Completed updating config for broker-logger 1."]
