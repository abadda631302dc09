"""Exports metrics and spans by OpenTelemetry: converts values and calls its exporters, on a thread of its own.

Owns the limits: points of a request, queued spans, duration of the shutdown. Encoding, HTTP and retries belong to
OpenTelemetry's packages, the extra `pybroker[otel]`; they log errors. Must not know where metrics come from. This
module is imported only where an export is enabled.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, cast

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import export as values
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from pybroker import __version__
from pybroker.metrics.metric import Histogram, Kind
from pybroker.metrics.registry import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pybroker.config.keys.opentelemetry_keys import ExportSettings
    from pybroker.metrics.metric import Metric, Sample
    from pybroker.metrics.spans import Span

log = logging.getLogger("pybroker.admin")

_POINTS = 500
"""Points of a request: some milliseconds of work, between which other threads run."""
_SPANS = 512
"""Spans of a request."""
_SPANS_WAITING = 4096
"""Queued spans; when the queue is full, the oldest is dropped."""
_SPANS_EACH_S = 2.0
_LAST_S = 1.0
"""Seconds that `close` waits for queued data to be sent, and again for requests in flight to be cancelled."""
_UNITS = {"seconds": "s", "bytes": "By"}


class Sender:
    """Sends to one receiver. Its methods block, and return whether the receiver has accepted everything."""

    def __init__(self, settings: ExportSettings, *, cluster_id: str, node_id: int) -> None:
        """Create the exporters; sends nothing."""
        self._began_ns = time.time_ns()
        self._resource = Resource.create(
            {
                "service.name": "pybroker",
                "service.version": __version__,
                "service.instance.id": f"{cluster_id}/{node_id}",
                "kafka.cluster.id": cluster_id,
                "kafka.node.id": node_id,
            }
        )
        self._scope = InstrumentationScope("pybroker", __version__)
        self._ids = RandomIdGenerator()
        headers = dict(settings.headers)
        self._metrics = OTLPMetricExporter(
            endpoint=f"{settings.endpoint}/v1/metrics", headers=headers, timeout=settings.timeout_s
        )
        self._traces = OTLPSpanExporter(
            endpoint=f"{settings.endpoint}/v1/traces", headers=headers, timeout=settings.timeout_s
        )

    def send_metrics(self, families: Iterable[tuple[str, Iterable[Sample]]]) -> bool:
        """Send all metrics in as many requests as needed. Raises KeyError for a name that the registry lacks."""
        return all(map(self._send, self._batches(families)))

    def send_spans(self, spans: Sequence[Span]) -> bool:
        """Send some spans in one request."""
        return self._traces.export([self._span(one) for one in spans]) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """Cancel the request in flight; from any thread."""
        shutdowns: tuple[Callable[[], object], ...] = (self._metrics.shutdown, self._traces.shutdown)
        for shutdown in shutdowns:
            shutdown()

    def _send(self, metrics: Sequence[values.Metric]) -> bool:
        scope = values.ScopeMetrics(self._scope, metrics, "")
        data = values.MetricsData([values.ResourceMetrics(self._resource, [scope], "")])
        return self._metrics.export(data) is values.MetricExportResult.SUCCESS

    def _batches(self, families: Iterable[tuple[str, Iterable[Sample]]]) -> Iterator[list[values.Metric]]:
        """Yield metrics with at most `_POINTS` points in total; a metric with many points is split."""
        now_ns = time.time_ns()
        batch: list[values.Metric] = []
        capacity = _POINTS
        for name, samples in families:
            metric = BY_NAME[name]
            part: list[Sample] = []
            for sample in samples:
                part.append(sample)
                capacity -= 1
                if not capacity:
                    yield [*batch, self._metric(metric, part, now_ns)]
                    batch, part, capacity = [], [], _POINTS
            if part:
                batch.append(self._metric(metric, part, now_ns))
        if batch:
            yield batch

    def _metric(self, metric: Metric, samples: Sequence[Sample], now_ns: int) -> values.Metric:
        cumulative = values.AggregationTemporality.CUMULATIVE
        data: values.Histogram | values.Sum | values.Gauge
        if metric.kind is Kind.HISTOGRAM:
            data = values.Histogram([self._histogram(metric, one, now_ns) for one in samples], cumulative)
        else:
            points = [self._number(metric, one, now_ns) for one in samples]
            is_counter = metric.kind is Kind.COUNTER
            data = values.Sum(points, cumulative, is_monotonic=True) if is_counter else values.Gauge(points)
        return values.Metric(metric.name, metric.help, _UNITS.get(metric.unit, ""), data)

    def _number(self, metric: Metric, sample: Sample, now_ns: int) -> values.NumberDataPoint:
        assert not isinstance(sample.value, Histogram)
        labels = dict(zip(metric.labels, sample.labels, strict=True))
        return values.NumberDataPoint(labels, self._began_ns, now_ns, sample.value)

    def _histogram(self, metric: Metric, sample: Sample, now_ns: int) -> values.HistogramDataPoint:
        value = sample.value
        assert isinstance(value, Histogram)
        below = (0, *value.cumulative[:-1])
        return values.HistogramDataPoint(
            dict(zip(metric.labels, sample.labels, strict=True)),
            self._began_ns,
            now_ns,
            count=value.cumulative[-1],
            sum=value.total,
            bucket_counts=[end - begin for begin, end in zip(below, value.cumulative, strict=True)],
            explicit_bounds=value.bounds,
            # Neither is known. Some versions have no type for that, but all encode None.
            min=cast("float", None),
            max=cast("float", None),
        )

    def _span(self, span: Span) -> ReadableSpan:
        ids = self._ids.generate_trace_id(), self._ids.generate_span_id()
        return ReadableSpan(
            span.name,
            context=SpanContext(*ids, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)),
            resource=self._resource,
            attributes=span.attributes,
            kind=SpanKind.SERVER,
            status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
            start_time=span.began_ns,
            end_time=span.ended_ns,
            instrumentation_scope=self._scope,
        )


class Export:
    """Exports all metrics at each interval, and spans as they are added; its thread runs until `close`."""

    def __init__(
        self, sender: Sender, families: Callable[[], Iterable[tuple[str, Iterable[Sample]]]], interval_s: float
    ) -> None:
        """`families` reads the current metrics."""
        self._sender = sender
        self._families = families
        self._interval_s = interval_s
        self._spans: deque[Span] = deque(maxlen=_SPANS_WAITING)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="opentelemetry", daemon=True)
        self._thread.start()

    def take(self, span: Span, /) -> None:
        """Queue a span, which is sent within seconds."""
        self._spans.append(span)

    def close(self) -> None:
        """Send the queued data, for at most two seconds."""
        self._stopped.set()
        self._thread.join(_LAST_S)
        self._sender.close()
        self._thread.join(_LAST_S)

    def _run(self) -> None:
        due = time.monotonic() + self._interval_s
        while not self._stopped.wait(max(0.0, min(due - time.monotonic(), _SPANS_EACH_S))):
            self._send_spans()
            if time.monotonic() >= due:
                self._send_metrics()
                due = time.monotonic() + self._interval_s
        self._send_spans()
        self._send_metrics()

    def _send_metrics(self) -> None:
        try:
            self._sender.send_metrics(self._families())
        except Exception:
            log.exception("Failed to export metrics by OpenTelemetry")

    def _send_spans(self) -> None:
        while self._spans:
            taken = [self._spans.popleft() for _ in range(min(_SPANS, len(self._spans)))]
            try:
                is_sent = self._sender.send_spans(taken)
            except Exception:
                log.exception("Failed to export spans by OpenTelemetry")
                return
            if not is_sent:
                return
