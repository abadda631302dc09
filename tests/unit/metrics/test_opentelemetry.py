"""What is sent: in requests of bounded size, spans as long as there is room, and nothing more after the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.config.keys.opentelemetry_keys import ExportSettings
from pybroker.metrics import opentelemetry
from pybroker.metrics.metric import Sample
from pybroker.metrics.opentelemetry import Export, Sender
from pybroker.metrics.spans import Span
from tests.support.conditions import wait_until
from tests.support.otlp import Receiver

SIZE = "kafka_log_log_size_bytes"
SPAN = Span("Metadata", 1, 2, {"kafka.api.key": 3}, "ValueError: why")
ERROR = 2


def sender(receiver: Receiver) -> Sender:
    return Sender(ExportSettings(receiver.endpoint, {}, 60.0, 5.0, 1.0), cluster_id="c", node_id=1)


def sizes(count: int) -> Iterator[tuple[str, list[Sample]]]:
    yield SIZE, [Sample(number, ("t", str(number))) for number in range(count)]
    yield "pybroker_build_info", [Sample(1, ("0",))]


@pytest.mark.parametrize(("count", "requests"), [(1, 1), (499, 1), (500, 2), (1200, 3)])
def test_metrics_of_many_points_come_in_parts(count: int, requests: int) -> None:
    with Receiver() as receiver:
        assert sender(receiver).send_metrics(sizes(count))
        assert len(receiver.received) == requests
        found = [
            point.as_int
            for _, _, message in receiver.received
            for metric in message.resource_metrics[0].scope_metrics[0].metrics
            if metric.name == SIZE
            for point in metric.gauge.data_points
        ]
    assert found == list(range(count))


def test_a_receiver_that_refuses_gets_no_further_parts() -> None:
    with Receiver(status=400) as receiver:
        assert not sender(receiver).send_metrics(sizes(1200))
        assert len(receiver.received) == 1


def test_a_span_that_failed_says_why() -> None:
    with Receiver() as receiver:
        assert sender(receiver).send_spans([SPAN])
        (span,) = receiver.spans()
    assert (span.status.code, span.status.message) == (ERROR, "ValueError: why")
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (1, 2)


def test_what_is_left_is_sent_at_the_end_the_newest_spans_of_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opentelemetry, "_SPANS_WAITING", 600)
    monkeypatch.setattr(opentelemetry, "_LAST_S", 60.0)
    with Receiver() as receiver:
        export = Export(sender(receiver), lambda: sizes(1), interval_s=60.0)
        for number in range(700):
            export.take(SPAN._replace(name=str(number)))
        export.close()
        assert [span.name for span in receiver.spans()] == [str(number) for number in range(100, 700)]
        assert receiver.metrics()[SIZE].gauge.data_points[0].as_int == 0


def test_metrics_that_cannot_be_read_once_are_read_again(caplog: pytest.LogCaptureFixture) -> None:
    def families() -> Iterator[tuple[str, list[Sample]]]:
        if not receiver.received and "Failed to export" not in caplog.text:
            raise RuntimeError("not now")
        return sizes(1)

    with Receiver() as receiver:
        export = Export(sender(receiver), families, interval_s=0.01)
        wait_until(lambda: SIZE in receiver.metrics(), within=60, what="the metrics came")
        export.close()
    assert "Failed to export metrics by OpenTelemetry" in caplog.text
