"""The control plane's part of the request path: receives events of the data plane and sends it responses.

Owns draining of events, decoding, version checks, dispatch, order per connection, and encoding. Must not know any
handler: `pybroker.node` passes the dispatch table. Rust owns sockets, frames, Produce and Fetch.

    native               the gateway to Rust
    data_plane_settings  the settings of the data plane
    listeners            the opening of listeners, and their addresses
    dispatch             the tables of APIs, by listener role
    pipeline             event fd -> drain -> decode -> handle -> encode -> respond
"""
