"""SASL on the broker's side: who a connection is, as one of Kafka's mechanisms proves it.

Owns the mechanisms as pure machines, and the exchanges of connections. Must not know sockets, requests or handlers.

    steps         what a mechanism makes of a client's token
    plain         PLAIN (RFC 4616)
    scram         SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802)
    bearer        OAUTHBEARER (RFC 7628)
    web_tokens    what makes a token of it good
    kerberos      GSSAPI (RFC 4752), over contexts of the system's Kerberos (kerberos_context)
    server        the exchange of each connection, its end, and re-authentication (KIP-368)
"""
