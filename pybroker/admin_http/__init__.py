"""The admin listener: HTTP requests of monitoring tools to a node.

Owns the socket, the thread that serves it, and its limits. Must not know the meaning of a metric.

    server  the thread, its connections, and their limits
    pages   /metrics, /healthz and /readyz
"""
