"""Behaviour of Java's collections that results of Kafka's code depend on. Must not know assignors or tools."""
