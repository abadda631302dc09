"""pybroker: Kafka without the JVM."""
