"""The processors of the DSL. Each one behaves as its counterpart in Kafka Streams."""
