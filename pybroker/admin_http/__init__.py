"""The admin listener: what an operator's tools ask a node over HTTP.

Owns the socket, the thread that serves it, and what may be asked of it. Must not know what a metric means.

    server  the thread, its connections, and their bounds
    pages   /metrics, /healthz and /readyz
"""
