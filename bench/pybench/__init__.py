"""Performance tools for anything that speaks Kafka's protocol, and the comparison of pybroker with its peers.

Owns the tools' options and outputs (exactly Kafka's), the peers' processes, the scenarios and the report. Uses pybroker
only through the public API of `pybroker.client`, the `pybroker` command and its performance tools
(`pybroker.cli.perf`), which it offers under its own names.
"""
