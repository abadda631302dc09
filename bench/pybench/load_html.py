"""A report of a load with plots, as one self-contained HTML file.

Plots are inline SVG: throughput over time, latency percentiles over time and over their whole range, and a comparison
of the clients. Needs matplotlib. Knows the structure of the result, not its source.
"""

from __future__ import annotations

import html
import io
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybroker.cli.perf.formats import MB
from pybroker.cli.perf.options import ToolError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pybroker_spark.load import Interval, Result, Total

_COLOURS = {"producer": "#2f6fb5", "consumer": "#d1783a"}
_STATES = {"done": "#3b8450", "stopped": "#9a7b1f", "failed": "#b3372f", "lost": "#b3372f"}
_OVER_TIME = (("50th", 0.5), ("99th", 0.99), ("99.9th", 0.999))
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #22272e; max-width: 62rem; margin: 2.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; font-weight: 600; margin: 0; }
h2 { font-size: 1.1rem; font-weight: 600; margin: 2.2rem 0 .6rem; }
p.about { color: #5c6670; margin: .2rem 0 1.4rem; } p.early { color: #b3372f; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .7rem; border-bottom: 1px solid #e3e7eb; white-space: nowrap; }
th { font-weight: 600; color: #5c6670; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
svg { width: 100%; height: auto; }
details { margin-top: 2rem; color: #5c6670; } pre { overflow-x: auto; }
"""


def write_html(result: Result, document: dict[str, Any], path: Path) -> None:
    """Write the report. Raises ToolError if matplotlib is missing or the file cannot be written."""
    try:
        import matplotlib as mpl
    except ModuleNotFoundError:
        raise ToolError("--html needs matplotlib, which is missing: pip install 'matplotlib>=3.9'") from None
    mpl.use("svg")
    # Text stays text: it is searchable and accessible to screen readers, and the file is smaller.
    mpl.rcParams.update({"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9, "axes.titlesize": 10})
    try:
        path.write_text(build_html(result, document), encoding="utf-8")
    except OSError as error:
        raise ToolError(f"--html {path}: {error.strerror}") from None


def build_html(result: Result, document: dict[str, Any]) -> str:
    """Return the complete page."""
    title = html.escape(str(document["settings"].get("title") or f"pybench {document['tool']}"))
    parts = [
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>",
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>",
        f"<p class='about'>{html.escape(_about(document))}<br>{html.escape(_versions(document))}</p>",
    ]
    if result.reason:
        parts.append(f"<p class='early'>Ended early: {html.escape(result.reason)}</p>")
    parts += ["<h2>Totals</h2>", _table(_TOTAL_HEAD, _total_rows(result, document))]
    for heading, figure in _plots(result):
        parts += [f"<h2>{heading}</h2>", _svg(figure)]
    parts += ["<h2>Clients</h2>", _table(_CLIENT_HEAD, _client_rows(result))]
    settings = "\n".join(f"{key} = {value}" for key, value in document["settings"].items())
    parts.append(f"<details><summary>Settings</summary><pre>{html.escape(settings)}</pre></details></body></html>\n")
    return "\n".join(parts)


def _about(document: dict[str, Any]) -> str:
    clients, tasks = len(document["clients"]), document["tasks"]
    return f"{clients} clients in {tasks} Spark tasks on {document['master']}, run {document['run']}"


def _versions(document: dict[str, Any]) -> str:
    waited = ", ".join(f"{what} {seconds:.1f} s" for what, seconds in document["waited_s"].items())
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items() if version)
    return f"{versions}; before the load began: {waited}" if waited else versions


_TOTAL_HEAD = ("", "records", "records/s", "MB/s", "avg ms", "50th", "95th", "99th", "99.9th", "max ms")
_CLIENT_HEAD = ("client", "task", "host", "state", "records", "records/s", "MB/s", "50th ms", "99th ms", "99.9th ms")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = ["<tr>" + "".join(f"<th>{word}</th>" for word in head) + "</tr>"]
    cells += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return f"<table>{''.join(cells)}</table>"


def _total_rows(result: Result, document: dict[str, Any]) -> list[list[str]]:
    rows = []
    for role in document["roles"]:
        whole, steady = result.total(role), result.steady(role)
        rows.append([f"{role}s", *_numbers(whole), *_latencies(whole, (0.5, 0.95, 0.99, 0.999), ends=True)])
        if steady.records != whole.records:
            latencies = _latencies(steady, (0.5, 0.95, 0.99, 0.999), ends=True)
            rows.append([f"{role}s, steady state", *_numbers(steady), *latencies])
    return rows


def _client_rows(result: Result) -> list[list[str]]:
    rows = []
    for standing in result.clients:
        total = result.of_client(standing)
        state = f"<span style='color:{_STATES[standing.state]}'>{standing.state}</span> {html.escape(standing.reason)}"
        name = f"{standing.client} {standing.role} of {html.escape(standing.topic)}"
        first = [name, str(standing.task), html.escape(standing.host), state]
        rows.append([*first, *_numbers(total), *_latencies(total, (0.5, 0.99, 0.999), ends=False)])
    return rows


def _numbers(total: Total) -> list[str]:
    volume = total.bytes / total.seconds / MB if total.seconds else 0.0
    return [f"{total.records:,}", f"{total.records_per_second:,.0f}", f"{volume:,.1f}"]


def _latencies(total: Total, quantiles: Sequence[float], *, ends: bool) -> list[str]:
    count = total.latencies.count
    if not count:
        return ["–"] * (len(quantiles) + 2 * ends)
    values = [f"{total.latencies.at_quantile(quantile) / 1000:,.2f}" for quantile in quantiles]
    if not ends:
        return values
    return [f"{total.latency_sum_us / count / 1000:,.2f}", *values, f"{total.latency_max_us / 1000:,.2f}"]


def _svg(figure: Figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _figure(height: float) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e3e7eb", linewidth=0.7)
    axes.set_axisbelow(True)
    return figure, axes


def _log_scale(axes: Axes) -> None:
    """Set a logarithmic latency scale with plain numbers at 1, 2 and 5 as labels."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _plots(result: Result) -> Iterator[tuple[str, Figure]]:
    roles = [role for role in _COLOURS if result.rows(role)]
    if not roles:
        return
    yield "Throughput over time", _throughput(result, roles)
    timed = [role for role in roles if any(row.histogram for row in result.rows(role))]
    for role in timed:
        yield f"Latency over time, {role}s", _latency_over_time(result, role)
    if timed:
        yield "Latency by percentile", _percentiles(result, timed)
    yield "Spread over the clients", _spread(result)


def _seconds(rows: Sequence[Interval]) -> dict[int, list[Interval]]:
    """Return the rows by the second in which they end. Each client has about one row a second."""
    slices: dict[int, list[Interval]] = {}
    for row in rows:
        slices.setdefault(int(row.end_s), []).append(row)
    return dict(sorted(slices.items()))


def _throughput(result: Result, roles: Sequence[str]) -> Figure:
    figure, axes = _figure(2.8)
    for role in roles:
        rows = result.rows(role)
        edges = sorted({edge for row in rows for edge in (row.begin_s, row.end_s)})
        # A row's records are spread evenly over its duration, so that rows with different bounds can be added.
        rates = [
            sum(row.records / (row.end_s - row.begin_s) for row in rows if row.begin_s <= a and b <= row.end_s)
            for a, b in itertools.pairwise(edges)
        ]
        if rates:
            axes.stairs([rate / 1e3 for rate in rates], edges, color=_COLOURS[role], label=f"{role}s", linewidth=1.4)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds from the start")
    axes.set_ylabel("thousand records/s")
    axes.legend(frameon=False)
    return figure


def _latency_over_time(result: Result, role: str) -> Figure:
    from pybroker_spark.load import total

    figure, axes = _figure(2.8)
    slices = {second: total(rows, 1.0).latencies for second, rows in _seconds(result.rows(role)).items()}
    slices = {second: latencies for second, latencies in slices.items() if latencies.count}
    for shade, (name, quantile) in zip((1.0, 0.65, 0.4), _OVER_TIME, strict=True):
        values = [latencies.at_quantile(quantile) / 1000 for latencies in slices.values()]
        axes.plot(list(slices), values, color=_COLOURS[role], alpha=shade, label=name, marker=".", linewidth=1.2)
    _log_scale(axes)
    axes.set_xlabel("seconds from the start")
    axes.set_ylabel("ms")
    axes.legend(frameon=False, ncols=3)
    return figure


def _percentiles(result: Result, roles: Sequence[str]) -> Figure:
    """Plot latency by percentile, on a scale that stretches the tail."""
    figure, axes = _figure(3.0)
    for role in roles:
        latencies = result.steady(role).latencies
        count = latencies.count or 1
        slower = [10 ** (-step / 20) for step in range(20 * 6 + 1) if 10 ** (-step / 20) * count >= 1]
        values = [latencies.at_quantile(1 - part) / 1000 for part in slower]
        axes.plot([1 / part for part in slower], values, color=_COLOURS[role], label=f"{role}s", linewidth=1.4)
    axes.set_xscale("log")
    _log_scale(axes)
    ticks = {1.0: "0", 2.0: "50", 10.0: "90", 100.0: "99", 1e3: "99.9", 1e4: "99.99", 1e5: "99.999", 1e6: "99.9999"}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    axes.set_xlabel("percentile")
    axes.set_ylabel("ms")
    axes.legend(frameon=False)
    return figure


def _spread(result: Result) -> Figure:
    figure, axes = _figure(max(1.6, 0.28 * len(result.clients) + 0.9))
    names = [f"{standing.client} {standing.role}" for standing in result.clients]
    rates = [result.of_client(standing).records_per_second / 1e3 for standing in result.clients]
    axes.barh(names, rates, color=[_COLOURS[standing.role] for standing in result.clients], height=0.6)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color="#e3e7eb", linewidth=0.7)
    axes.set_xlabel("thousand records/s")
    return figure
