"""SASL on the broker's side: Kafka's mechanisms and the authentication of connections.

Owns the mechanisms as pure state machines, and the exchanges of connections. Must not know sockets, requests or
handlers.

    steps         the result of a client's token
    plain         PLAIN (RFC 4616)
    scram         SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802)
    bearer        OAUTHBEARER (RFC 7628)
    web_tokens    validation of its tokens
    kerberos      GSSAPI (RFC 4752), over contexts of the system's Kerberos (kerberos_context)
    server        the exchange of each connection, its end, and re-authentication (KIP-368)
"""
