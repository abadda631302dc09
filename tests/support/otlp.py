"""A receiver of OTLP over HTTP that decodes messages with OpenTelemetry's own declarations."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MESSAGES: dict[str, Any] = {"/v1/metrics": ExportMetricsServiceRequest, "/v1/traces": ExportTraceServiceRequest}


class Receiver:
    """A context manager that runs a server on loopback."""

    def __init__(self, status: int = 200) -> None:
        """`status` is the HTTP status of each response."""
        self.received: list[tuple[str, dict[str, str], Any]] = []
        """The path, headers and message of every request, in order."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                message = MESSAGES[self.path].FromString(body)
                receiver.received.append((self.path, dict(self.headers.items()), message))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def metrics(self) -> dict[str, Any]:
        """Return the received metrics by name. Of a metric received several times, the last."""
        return {metric.name: metric for metric in self._metrics()}

    def point(self, name: str, **labels: str) -> Any:
        """Return the newest point of a series, or None if none was received."""
        found = None
        for metric in self._metrics():
            if metric.name == name:
                points = getattr(metric, metric.WhichOneof("data")).data_points
                found = next((point for point in points if attributes(point) == labels), found)
        return found

    def spans(self) -> list[Any]:
        """Return the received spans."""
        return [
            span
            for _, _, message in self._of("/v1/traces")
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def _metrics(self) -> Iterator[Any]:
        for _, _, message in self._of("/v1/metrics"):
            for resource in message.resource_metrics:
                for scope in resource.scope_metrics:
                    yield from scope.metrics

    def _of(self, path: str) -> list[tuple[str, dict[str, str], Any]]:
        return [one for one in list(self.received) if one[0] == path]


def attributes(one: Any) -> dict[str, str | int]:
    """Return the attributes of a resource, a point or a span."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in one.attributes}
