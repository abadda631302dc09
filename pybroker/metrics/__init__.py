"""What is counted and timed, under Kafka's names.

Owns names and registries of metrics. Must not know who counts or who reads.

    exposition     metrics as the text that Prometheus reads
    opentelemetry  sending metrics and spans; imported where that is asked for
    registry       every metric: its name, kind, labels and meaning
    requests       how many requests the control plane has taken; the broker's log says it at a stop
    spans          what one request took
"""
