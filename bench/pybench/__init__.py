"""Performance tools for anything that speaks Kafka's protocol, and the comparison of pybroker with its peers.

Owns the tools' options and outputs (Kafka's, to the letter), the peers' processes, the scenarios and the report. Knows
pybroker only by `pybroker.client`'s public face, by the `pybroker` command, and by the performance tools of that
(`pybroker.cli.perf`), which it has under names of its own.
"""
