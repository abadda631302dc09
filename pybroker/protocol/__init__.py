"""Messages: how they are declared, what Kafka declares, and their way to bytes and back."""
