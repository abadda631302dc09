"""A function takes at most six parameters: what belongs together is one value."""

from __future__ import annotations

import ast

from tests.support import repository

MOST = 6
#: Functions that take more. This list may only shrink.
MORE = {
    "bench/pybench/turns.py:run_scenario",
    "pybroker/broker/registration.py:register_broker",
    "pybroker/cli/dump_log/indexes.py:_check_time_entry",
    "pybroker/cli/perf/formats.py:consumer_interval",
    "pybroker/cli/perf/formats.py:producer_total",
    "pybroker/client/producing/async_producer.py:send",
    "pybroker/client/consume_transform_produce.py:__init__",
    "pybroker/client/producing/producer.py:__new__",
    "pybroker/client/producing/producer.py:send",
    "pybroker/config/key.py:__init__",
    "pybroker/config/key.py:_number",
    "pybroker/config/key.py:double",
    "pybroker/config/key.py:integer",
    "pybroker/config/key.py:listing",
    "pybroker/config/key.py:long",
    "pybroker/config/key.py:optional_integer",
    "pybroker/config/key.py:string",
    "pybroker/controller/cluster/partition_changes.py:build_change",
    "pybroker/controller/forwarding_channel.py:register_broker",
    "pybroker/controller/local_channel.py:register_broker",
    "pybroker/controller/quorum/snapshot/snapshots.py:write_snapshot",
    "pybroker/coordinator/group/modern/heartbeat.py:complete",
    "pybroker/coordinator/group/service.py:__init__",
    "pybroker/coordinator/transaction/building.py:build_coordinator",
    "pybroker/coordinator/transaction/markers.py:__init__",
    "pybroker/coordinator/transaction/service.py:__init__",
    "pybroker/handlers/registry.py:handles",
    "pybroker/machine/runner.py:__init__",
    "pybroker/protocol/schema.py:__new__",
    "pybroker/security/acls.py:decide",
    "pybroker/security/sasl/server.py:__init__",
    "pybroker/storage/compaction/cleaner.py:__init__",
    "pybroker/storage/maintenance.py:__init__",
    "pybroker/testing/cluster.py:__init__",
    "spark/pybroker_spark/load/mix.py:build_plan",
    "spark/pybroker_spark/pipelines/ingest.py:records",
}


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The names of a function's parameters, without that of the object or the class itself."""
    arguments = function.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def test_a_function_takes_at_most_six_parameters() -> None:
    found = {
        f"{path}:{node.name}"
        for path in repository.files_under("pybroker", "bench", "spark", "docs", "changes", suffix=".py")
        for node in ast.walk(repository.tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(parameters(node)) > MOST
    }
    assert sorted(found - MORE) == []
    assert sorted(MORE - found) == [], "no longer in need of an exception"
