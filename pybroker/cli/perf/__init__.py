"""Kafka's performance tools on the native client: what they measure, and the lines that they print.

`pybroker producer-perf-test`, `consumer-perf-test` and `e2e-latency` use them; `pybench` has them under its own names,
beside tools of its own. They need load generation (docs/adr/0034-load-generation-is-a-crate-and-a-feature.md).
"""
