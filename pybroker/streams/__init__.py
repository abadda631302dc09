"""Kafka Streams in Python: topologies of streams, tables and state, and a driver that runs them in a test.

A topology is data. It is described, optimised and named as in Apache Kafka. `pybroker.streams.testing` runs it.
"""
