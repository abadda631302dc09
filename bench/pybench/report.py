"""`pybench report`: bench/REPORT.md from bench/results/*.json.

Figures are median and range of the counted rounds. Targets compare ratios within the same run.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pybench.checkout import BENCH
from pybench.figures import FIGURES, Summary, summarise
from pybench.scenario import BROKERS, SPARK, STREAMS, Reach, Scenario, read_scenarios
from pybench.storm_load import PART

_HEAD = """\
# pybroker and Apache Kafka, side by side

Made by `make bench`; the raw rounds are in `bench/results/`. Do not edit.

Both brokers run with default settings on the same machine, each on its own data directory of the same file system
(but `log.segment.delete.delay.ms` is 1000 for both, so that a deleted topic's bytes are gone before the next turn, and
`group.initial.rebalance.delay.ms` is 0).
Rounds go in turns (A B A B), after an uncounted one; one in which the host took more than 0.5 % of the cores' time is
taken again, for all contestants, at most as often as there are rounds; a topic is deleted after its round. A figure is
the median of the counted rounds, with the smallest and largest in brackets; CPU is the broker process's user and system
time from `/proc`, summed over the rounds. Only ratios of one run are judged: brokers and clients share the machine's
cores.
"""

_SPARK_HEAD = """\
# Spark

Made by `make bench-spark`, in the same way: rounds in turns, medians, each load against a broker that does nothing
else. Broker, Spark's JVM, its Python workers and the clients in them share the machine's cores. A round of a load is a
whole run of its tool with a Spark of its own; its time counts from the start that the tasks agreed on to the last
record. The rows of the data source share one session, which every round after the uncounted ones finds warm.
"""

_STREAMS_HEAD = """\
# Streams

Made by `make bench-streams`: one application of `pybroker.streams` in one Python process, and the same topology in
Kafka Streams 4.4.0 in one JVM. Rounds go in turns against one pybroker. The JVM has a heap of at most 1 GiB, and its
own choice of collector and compilers. Before a counted application, the JVM runs another one over 500,000 records of
the same input, or over all records if they are fewer. All settings are Kafka's defaults unless the row has others. The
records lie ready in one partition. A round begins with the first processed record, and ends with the append of the last
output record at the broker. After the last record the application is closed, which commits. Each output is read and
compared with the expected sums.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add options for the input and output paths."""
    parser.add_argument("--results", type=Path, default=BENCH / "results", metavar="DIR", help="default: bench/results")
    parser.add_argument("--report", type=Path, metavar="FILE", help="default: bench/REPORT.md")


def main(options: argparse.Namespace) -> int:
    """Write the report from existing results."""
    print(write(options.results, options.report))
    return 0


def write(results: Path, report: Path | None) -> Path:
    """Write the report of all existing results. Returns its path."""
    pairs = []
    for scenario in read_scenarios():
        path = results / f"{scenario.id}.json"
        if path.exists():
            pairs.append((scenario, json.loads(path.read_text())))
    path = report or (BENCH / "REPORT.md" if results == BENCH / "results" else results / "REPORT.md")
    brokers = [(s, d) for s, d in pairs if s.suite == BROKERS]
    spark = [(s, d) for s, d in pairs if s.suite == SPARK]
    quick = ["**Some rows are of quick runs (few records, two rounds): a sketch, not a result.**\n"]
    head = [_HEAD, *(quick if any(document["quick"] for _, document in pairs) else [])]
    lines = [*head, *_summary(brokers), *(line for s, d in brokers for line in _section(s, d))]
    if spark:
        lines += [_SPARK_HEAD, *_summary(spark), *(line for s, d in spark for line in _section(s, d))]
    streams = [(s, d) for s, d in pairs if s.suite == STREAMS]
    if streams:
        lines += [_STREAMS_HEAD, *_summary(streams), *(line for s, d in streams for line in _section(s, d))]
    path.write_text("\n".join(lines) + "\n")
    return path


def verdicts(scenario: Scenario, document: dict[str, Any]) -> Iterator[str]:
    """Yield one line for each figure with a target."""
    for reach in scenario.reaches:
        figure = FIGURES[reach.figure]
        if not _is_measured(reach, document):
            yield f"{figure.title}: {reach.contestant}, to reach {reach.text()}: not measured"
            continue
        ratio, _, _ = _judge(reach, document)
        met = "met" if reach.is_met(ratio) else "MISSED"
        yield f"{figure.title}: {reach.contestant} / {reach.baseline} = {ratio:.3g}, to reach {reach.text()}: {met}"


def _is_measured(reach: Reach, document: dict[str, Any]) -> bool:
    """Return whether the results contain the contestant and the figure. A row may have gained them after the run."""
    if reach.contestant not in document["contestants"]:
        return False
    try:
        _judge(reach, document)
    except KeyError:
        return False
    return True


def _judge(reach: Reach, document: dict[str, Any]) -> tuple[float, Summary, Summary]:
    ours = summarise(reach.figure, document["contestants"][reach.contestant]["rounds"])
    if reach.limit is not None:
        theirs = Summary(reach.limit, reach.limit, reach.limit)
    else:
        theirs = summarise(reach.figure, document["contestants"][reach.baseline]["rounds"])
    if theirs.middle:
        return ours.middle / theirs.middle, ours, theirs
    # The limit is zero: one round above it misses the target.
    return (float("inf") if ours.high > 0 else 0.0), ours, theirs


def _summary(pairs: list[tuple[Scenario, dict[str, Any]]]) -> Iterator[str]:
    yield "| row | figure | ours | against | ratio | reach | |"
    yield "|---|---|---|---|---|---|---|"
    for scenario, document in pairs:
        for number, reach in enumerate(scenario.reaches):
            figure = FIGURES[reach.figure]
            if not _is_measured(reach, document):
                shown = f"{reach.contestant}: not measured"
                yield f"| | {figure.title}, {figure.unit} | {shown} | {reach.baseline} | | {reach.text()} | |"
                continue
            ratio, ours, theirs = _judge(reach, document)
            values = (
                f"[{scenario.title}](#{scenario.id})" if number == 0 else "",
                f"{figure.title}, {figure.unit}",
                f"{reach.contestant}: {ours.middle:.{figure.digits}f}",
                f"{reach.baseline}: {theirs.middle:.{figure.digits}f}",
                f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}",
                reach.text(),
                "met" if reach.is_met(ratio) else "**missed**",
            )
            yield f"| {' | '.join(values)} |"
    yield ""


def _section(scenario: Scenario, document: dict[str, Any]) -> Iterator[str]:
    yield f'<a id="{scenario.id}"></a>'
    yield ""
    yield f"## {scenario.title}"
    yield ""
    if document["kafka_in_both_roles"]:
        yield "**A check of the method: Apache Kafka ran in both roles.**\n"
    contestants = document["contestants"]
    titles = [f"{FIGURES[name].title}, {FIGURES[name].unit}" for name in scenario.figures]
    yield f"| | {' | '.join(titles)} |"
    yield f"|---|{'---|' * len(titles)}"
    for name, entry in contestants.items():
        yield f"| {name} | {' | '.join(_cells(scenario, entry['rounds']))} |"
    yield ""
    yield from parts(contestants)
    if scenario.remark:
        yield f"{scenario.remark}\n"
    versions = document["versions"]
    yield (
        f"{document['rounds']} rounds after {document['warm_up_rounds']} uncounted, {document['records']:,} records"
        f"{' of ' + str(document['size']) + ' bytes' if document['size'] else ''} each"
        f"{' (quick)' if document['quick'] else ''}{_taken_again(contestants)}; "
        f"{document['taken'][:16].replace('T', ' ')} UTC; "
        f"Apache Kafka {versions['kafka']}, pybroker {versions['pybroker']}, CPython {versions['python']}, "
        f"Linux {versions['kernel']}, {document['cores']} cores{_of_processor(document)}, "
        f"TCP congestion control {document['congestion_control']}."
    )
    yield ""
    yield "```"
    for name, entry in contestants.items():
        yield f"# {name}"
        yield entry["command"]
    yield "```"
    yield ""


def _taken_again(contestants: dict[str, Any]) -> str:
    """Return a note on the rounds that were repeated because of the host, which do not count."""
    again = max((entry.get("again", 0) for entry in contestants.values()), default=0)  # equal for all contestants
    return f", {again} more not counted, as the host took the cores away" if again else ""


def parts(contestants: dict[str, Any]) -> Iterator[str]:
    """Yield a table of the parts of a round: longest wait and p99 of each contestant, and the ratio of the longest."""
    sides = [(name, entry["rounds"]) for name, entry in contestants.items()]
    parts = dict.fromkeys(name.partition(PART)[0] for name in sides[0][1][0] if PART in name)
    if not parts:
        return
    columns = [f"{name}: {what}, ms" for name, _ in sides for what in ("longest", "p99", "request")]
    yield f"| beside | {' | '.join(columns)} | longest, ratio |"
    yield f"|---|{'---|' * (3 * len(sides) + 1)}"
    for part in parts:
        cells, longest = [], []
        for _, rounds in sides:
            waits = [statistics.median(r[f"{part}{PART}{what}_ms"] for r in rounds) for what in ("max", "p99", "storm")]
            cells += [f"{wait:.1f}" for wait in waits]
            longest.append(waits[0])
        yield f"| {part} | {' | '.join(cells)} | {longest[0] / longest[-1]:.2f} |"
    yield ""


def _of_processor(document: dict[str, Any]) -> str:
    # Older results do not contain the processor.
    return f" of {document['processor']}" if "processor" in document else ""


def _cells(scenario: Scenario, rounds: list[dict[str, float]]) -> Iterator[str]:
    for name in scenario.figures:
        try:
            summary, digits = summarise(name, rounds), FIGURES[name].digits
        except KeyError:
            yield ""
            continue
        yield f"{summary.middle:.{digits}f} ({summary.low:.{digits}f}–{summary.high:.{digits}f})"
