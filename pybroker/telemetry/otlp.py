"""Decodes payloads of clients: OpenTelemetry's MetricsData v1 to plain values.

Owns which points are used: numbers of gauges and sums, which are all that Kafka's clients push. Protobuf and its
schema are OpenTelemetry's packages, of the extra `pybroker[telemetry]`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DELTA = 1
"""OpenTelemetry's AGGREGATION_TEMPORALITY_DELTA."""


class MalformedPayloadError(ValueError):
    """The payload is no MetricsData."""


class Point(NamedTuple):
    """A measured number of a client."""

    name: str
    labels: tuple[tuple[str, str], ...]
    """Labels sorted by name."""
    value: float
    is_delta: bool
    """Whether it is a delta since the previous push."""
    is_sum: bool
    """Whether it is a sum rather than a gauge."""


Decode: TypeAlias = "Callable[[bytes], Iterator[Point]]"
"""Yields the points of a payload. Raises MalformedPayloadError."""


def find_decoder() -> Decode | None:
    """Return the decoder of payloads; None where its packages are not installed."""
    try:
        if find_spec("opentelemetry.proto.metrics.v1.metrics_pb2") is None:
            return None
    except ImportError:
        return None

    def decode(payload: bytes) -> Iterator[Point]:
        # Imported at the first push of a client: a tenth of the imports of a start.
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

        try:
            data = MetricsData.FromString(payload)
        except DecodeError as error:
            raise MalformedPayloadError(f"the payload is not OpenTelemetry MetricsData: {error}") from error
        for resource in data.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    yield from _points(metric)

    return decode


def _points(metric: Any) -> Iterator[Point]:
    kind = metric.WhichOneof("data")
    if kind not in ("gauge", "sum"):
        return
    series = getattr(metric, kind)
    is_sum = kind == "sum"
    is_delta = is_sum and series.aggregation_temporality == _DELTA
    for point in series.data_points:
        value = point.as_double if point.WhichOneof("value") == "as_double" else float(point.as_int)
        labels = tuple(sorted((one.key, _text(one.value)) for one in point.attributes))
        yield Point(metric.name, labels, value, is_delta, is_sum)


def _text(value: Any) -> str:
    kind = value.WhichOneof("value")
    return "" if kind is None else str(getattr(value, kind))
