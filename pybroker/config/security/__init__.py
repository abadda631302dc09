"""Settings of security as values: TLS, SASL, tokens and tickets of listeners, and of connections to other nodes."""
