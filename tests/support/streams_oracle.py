"""Compare topologies with Kafka Streams: one JVM for each test module, and readable differences."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pybench.peers import java
from pybench.peers.errors import MissingToolError
from tests.support import programs, streams_spec
from tests.support.java_oracle import JavaOracle
from tests.support.streams_steps import Step, decoded

SOURCES = Path(__file__).parent / "java" / "streams"
COMPARED = ("failed_at", "branches", "produced", "stores", "seen", "printed")
EXTRACTOR = re.compile(r"\(extractor class: [^)]*\)")
"""The class of an extractor has another name in each language and run."""


@contextmanager
def running(program: str = "StreamsOracle") -> Iterator[JavaOracle]:
    """Yield a JVM that runs Kafka's test driver, or the applications of `StreamsApplication`.

    Skips (in CI: fails) the test without Java or Kafka's jars.
    """
    programs.kafka_tools()
    try:
        command = java.streams_java_command(program, SOURCES)
    except MissingToolError as error:
        programs.lacking(str(error))
    with (
        TemporaryDirectory(prefix="streams-oracle-") as state,
        subprocess.Popen([*command, state], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        try:
            yield JavaOracle(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()


def stores_of(topology: Sequence[Step]) -> list[str]:
    """Return the names of the stores that steps name and whose contents can be read."""
    # Joins of streams derive two names from `store`.
    own = [store["store"] for step in topology for store in step.get("own_stores", ())]
    named = [step["store"] for step in topology if isinstance(step.get("store"), str) and "windows" not in step]
    return sorted({*own, *named})


def check_description(oracle: JavaOracle, topology: Sequence[Step], config: dict[str, str]) -> None:
    """Assert that Kafka and pybroker describe a topology with the same text, or that both reject the topology."""
    theirs = oracle.query("describe", topology=topology, config=config)
    ours = streams_spec.describe(topology, config)
    assert ("error" in theirs) == ("error" in ours), _report(topology, config, theirs, ours)
    if "error" in theirs:
        return
    expected, actual = (EXTRACTOR.sub("(extractor)", result["description"]) for result in (theirs, ours))
    if expected != actual:
        lines = difflib.unified_diff(expected.splitlines(), actual.splitlines(), "Kafka", "pybroker", lineterm="", n=99)
        raise AssertionError("\n".join([f"config: {config}", spec_text(topology), *lines]))
    assert ours["branches"] == theirs["branches"]


def check_outputs(
    oracle: JavaOracle,
    topology: Sequence[Step],
    config: dict[str, str],
    inputs: Iterable[Step],
    state_dir: str | None = None,
) -> dict[str, Any]:
    """Assert that Kafka and pybroker produce the same records from the same inputs. Returns what Kafka produces.

    All topics are compared, changelogs and repartition topics included, and the contents of named stores.
    Kafka's stores are in RocksDB always. With a `state_dir` those of pybroker are too.
    """
    inputs, stores = list(inputs), stores_of(topology)
    theirs = oracle.query("run", topology=topology, config=config, inputs=inputs, stores=stores)
    own_config = config if state_dir is None else {**config, "state.dir": state_dir}
    ours = streams_spec.run(topology, own_config, inputs, stores)
    assert ("error" in theirs) == ("error" in ours), _report(topology, config, theirs, ours)
    if "error" in theirs and "failed_at" not in theirs and "failed_at" not in ours:
        return theirs  # both reject the topology
    problem = difference(theirs, ours)
    if problem:
        description = oracle.query("describe", topology=topology, config=config).get("description", "")
        raise AssertionError(
            f"{problem}\nconfig: {config}\n{spec_text(topology)}\n{description}\n{inputs_text(inputs)}"
        )
    return theirs


def difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Return the first difference of two results as text, "" if they are equal."""
    for field in COMPARED:
        expected, actual = theirs.get(field), ours.get(field)
        if expected == actual:
            continue
        if not isinstance(expected, dict) or not isinstance(actual, dict):
            return f"{field}: {_first(expected, actual)}"
        for name in sorted({*expected, *actual}):
            if expected.get(name, []) != actual.get(name, []):
                return f"{field} of {name}: {_first(expected.get(name, []), actual.get(name, []))}"
    return ""


def _first(expected: Any, actual: Any) -> str:
    """Return the first index at which two lists differ, and both elements."""
    if not isinstance(expected, list) or not isinstance(actual, list):
        return f"\n  Kafka:    {expected!r}\n  pybroker: {actual!r}"
    index = next(
        (at for at, (one, other) in enumerate(zip(expected, actual, strict=False)) if one != other),
        min(len(expected), len(actual)),
    )
    return (
        f"{len(expected)} expected, {len(actual)} found, the first difference is at {index}"
        f"\n  Kafka:    {readable(expected[index : index + 2])}\n  pybroker: {readable(actual[index : index + 2])}"
    )


def readable(elements: Sequence[Any]) -> list[Any]:
    """Return records with keys and values as bytes instead of base64."""
    return [
        {**one, "key": decoded(one["key"]), "value": decoded(one["value"])} if isinstance(one, dict) else one
        for one in elements
    ]


def spec_text(topology: Sequence[Step]) -> str:
    """Return a topology with one step a line, as JSON."""
    return "\n".join(json.dumps(step) for step in topology)


def inputs_text(inputs: Sequence[Step]) -> str:
    """Return inputs with one input a line."""
    return "\n".join(str(readable([one])[0] if "topic" in one else one) for one in inputs)


def _report(topology: Sequence[Step], config: dict[str, str], theirs: Any, ours: Any) -> str:
    lines = [f"config: {config}", spec_text(topology)]
    for name, result in (("Kafka", theirs), ("pybroker", ours)):
        if result:
            lines.append(f"{name}: {result.get('error')} {result.get('message', '')}"[:2000])
    return "\n".join(lines)
