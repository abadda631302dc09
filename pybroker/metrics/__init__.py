"""What is counted and timed, under Kafka's names.

Owns names and registries of metrics. Must not know who counts or who looks.

    requests  how many requests the control plane has taken; the broker's log says it at a stop
"""
