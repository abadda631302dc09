"""Metrics under Kafka's names: counters, gauges and durations.

Owns names and registries of metrics. Must not know where values are recorded or read.

    exposition     metrics as text for Prometheus
    opentelemetry  export of metrics and spans; imported only where it is enabled
    registry       every metric: its name, kind, labels and meaning
    requests       counts of control-plane requests; the broker logs them when it stops
    spans          the duration of one request
"""
