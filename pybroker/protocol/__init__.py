"""Messages: their schema language, Kafka's declarations, and their encoding and decoding."""
