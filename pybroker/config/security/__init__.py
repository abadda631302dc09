"""Security settings as values: TLS, SASL, tokens and Kerberos of listeners, and of connections to other nodes."""
