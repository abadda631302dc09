"""Who votes about the metadata log, and how that changes (KIP-853)."""
