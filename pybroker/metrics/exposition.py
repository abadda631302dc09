"""Metrics as text: OpenMetrics 1.0, which Prometheus reads.

Owns the format. Must not know where values come from. The text comes in pieces of some hundred lines, so that who
writes it lets other threads run in between.
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
_LINES = 200
"""Lines of a piece: about a millisecond's work."""


def render(families: Iterable[tuple[str, Iterable[Sample]]]) -> Iterator[str]:
    """Yield the text of families by name, each with its samples; raises KeyError for a name that the registry lacks."""
    lines: list[str] = []
    for name, samples in families:
        metric = BY_NAME[name]
        lines += _head(metric)
        for sample in samples:
            lines += _lines(metric, sample)
            if len(lines) >= _LINES:
                yield "".join(lines)
                lines.clear()
    lines.append("# EOF\n")
    yield "".join(lines)


def _head(metric: Metric) -> Iterator[str]:
    yield f"# TYPE {metric.name} {metric.kind.value}\n"
    if metric.unit:
        yield f"# UNIT {metric.name} {metric.unit}\n"
    yield f"# HELP {metric.name} {_escaped(metric.help)}\n"


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
    """Return the ends of the buckets' names; all histograms of a page have the same bounds."""
    return (*(f'le="{bound!r}"}}' for bound in bounds), 'le="+Inf"}')


def _braced(pairs: list[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
