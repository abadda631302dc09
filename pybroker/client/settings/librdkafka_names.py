"""Settings with different names in librdkafka (and confluent-kafka) than in Kafka's clients.

Owns the translation, for error messages. librdkafka's names are from its CONFIGURATION.md; names that both have are
not listed.
"""

from __future__ import annotations

KAFKAS_NAMES = {
    "api.version.request": None,
    "auto.commit.enable": "enable.auto.commit",
    "batch.num.messages": "batch.size",
    "broker.address.family": None,
    "compression.codec": "compression.type",
    "debug": None,
    "default.topic.config": None,
    "delivery.report.only.error": None,
    "enable.auto.offset.store": None,
    "enable.partition.eof": None,
    "error_cb": None,
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "log_level": None,
    "logger": None,
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "on_commit": None,
    "on_delivery": None,
    "queue.buffering.max.kbytes": "buffer.memory",
    "queue.buffering.max.messages": "buffer.memory",
    "queue.buffering.max.ms": "linger.ms",
    "queued.max.messages.kbytes": "queued.responses",
    "queued.min.messages": "queued.responses",
    "reconnect.backoff.jitter.ms": "reconnect.backoff.ms",
    "request.required.acks": "acks",
    "socket.keepalive.enable": None,
    "socket.nagle.disable": None,
    "socket.receive.buffer.bytes": "receive.buffer.bytes",
    "socket.send.buffer.bytes": "send.buffer.bytes",
    "socket.timeout.ms": "request.timeout.ms",
    "statistics.interval.ms": None,
    "stats_cb": None,
    "throttle_cb": None,
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
}
"""Kafka's name by librdkafka's name; None where Kafka's clients have no such setting."""
