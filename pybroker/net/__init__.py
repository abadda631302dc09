"""The control plane's end of the request path: events come up here and answers go down.

Owns draining of events, decoding, version checks, dispatch, order per connection, and encoding. Must not know any
handler: `pybroker.node` gives it a dispatch table. Sockets, frames, Produce and Fetch are Rust's.

    native               the gateway to Rust
    data_plane_settings  the broker's settings as the data plane gets them
    listeners            opening listeners and saying where they are
    dispatch             the table of APIs and what it must know
    pipeline             event fd -> drain -> decode -> handle -> encode -> respond
"""
