"""The control plane's part of the request path: receives events of the data plane and sends it responses.

Owns draining of events, decoding, version checks, dispatch, order per connection, and encoding. Must not know any
handler: `pybroker.node` passes the dispatch table. Rust owns sockets, frames, Produce and Fetch.

    native               the gateway to Rust
    data_plane_settings  the broker's settings as the data plane gets them
    listeners            opening listeners and saying where they are
    dispatch             the table of APIs and what it must know
    pipeline             event fd -> drain -> decode -> handle -> encode -> respond
"""
