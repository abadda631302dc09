"""Metrics as text: OpenMetrics 1.0, or the older text format of Prometheus for a client that prefers it.

Owns both formats, and the choice for a client. Must not know where values come from. The text is yielded in chunks
of some hundred lines, so that other threads run in between.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pybroker.metrics.metric import Histogram, Kind, Metric
from pybroker.metrics.registry import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pybroker.metrics.metric import Sample

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
CLASSIC_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LINES = 200
"""Lines of a chunk: about one millisecond of work."""


def wants_classic(accept: str) -> bool:
    """Return whether a client prefers Prometheus' text format by its Accept header (RFC 9110, 12.5.1).

    A client with equal preference, with `*/*`, or with neither format gets OpenMetrics.
    """
    weights: dict[str, float] = {}
    for media_range in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in media_range.split(";"))
        weight = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        try:
            weights[kind] = max(weights.get(kind, 0.0), float(weight))
        except ValueError:
            continue
    anything = weights.get("*/*", 0.0)
    classic = weights.get("text/plain", weights.get("text/*", anything))
    return classic > weights.get("application/openmetrics-text", weights.get("application/*", anything))


def render(families: Iterable[tuple[str, Iterable[Sample]]], *, classic: bool = False) -> Iterator[str]:
    """Yield the text of families by name, each with its samples. Raises KeyError for a name that the registry lacks.

    `classic` selects Prometheus' text format 0.0.4 instead of OpenMetrics.
    """
    lines: list[str] = []
    for name, samples in families:
        metric = BY_NAME[name]
        lines += _classic_head(metric) if classic else _head(metric)
        for sample in samples:
            lines += _lines(metric, sample)
            if len(lines) >= _LINES:
                yield "".join(lines)
                lines.clear()
    if not classic:
        lines.append("# EOF\n")
    yield "".join(lines)


def _head(metric: Metric) -> Iterator[str]:
    yield f"# TYPE {metric.name} {metric.kind.value}\n"
    if metric.unit:
        yield f"# UNIT {metric.name} {metric.unit}\n"
    yield f"# HELP {metric.name} {_escaped(metric.help)}\n"


def _classic_head(metric: Metric) -> Iterator[str]:
    """Yield the lines before the samples. A counter has the name of its series, and quotes are not escaped."""
    name = metric.exposed[0] if metric.kind is Kind.COUNTER else metric.name
    yield f"# HELP {name} {_escaped(metric.help, quotes=False)}\n"
    yield f"# TYPE {name} {metric.kind.value}\n"


def _lines(metric: Metric, sample: Sample) -> Iterator[str]:
    pairs = [f'{label}="{_escaped(value)}"' for label, value in zip(metric.labels, sample.labels, strict=True)]
    value = sample.value
    if isinstance(value, Histogram):
        head = f"{metric.name}_bucket{{{''.join(f'{pair},' for pair in pairs)}"
        for bound, below in zip(_bounds(value.bounds), value.cumulative, strict=True):
            yield f"{head}{bound} {below}\n"
        yield f"{metric.name}_count{_braced(pairs)} {value.cumulative[-1]}\n"
        yield f"{metric.name}_sum{_braced(pairs)} {value.total!r}\n"
        return
    end = "_total" if metric.kind is Kind.COUNTER else ""
    yield f"{metric.name}{end}{_braced(pairs)} {value!r}\n"


@lru_cache(maxsize=4)
def _bounds(bounds: tuple[float, ...]) -> tuple[str, ...]:
    """Return the label values of the buckets; all histograms of a page have the same bounds."""
    return (*(f'le="{bound!r}"}}' for bound in bounds), 'le="+Inf"}')


def _braced(pairs: list[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
