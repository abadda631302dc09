"""What Java's collections do, where a result of Kafka's own code depends on it. Knows no assignor and no tool."""
