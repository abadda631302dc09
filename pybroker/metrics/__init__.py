"""What is counted and timed, under Kafka's names. Nothing is counted yet.

Owns names and registries of metrics. Must not know who counts or who looks.
"""
