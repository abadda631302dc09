"""The packages of pybroker's extras in `pyproject.toml`, for messages about a missing package.

Owns the install command of a message. It lists the packages themselves, since `pip install 'pybroker[cli]'` works
only where an index contains pybroker, which may be installed from a clone or a wheel.
"""

from __future__ import annotations

PACKAGES = {
    "cli": ("rich>=13", "shtab>=1.8"),
    "oauth": ("pyjwt[crypto]>=2.10",),
    "gssapi": ("gssapi>=1.8",),
    "streams": ("rocksdict>=0.3.29",),
    "columns": ("pyarrow>=18",),
    "testing": ("cryptography>=42",),
    "telemetry": ("opentelemetry-proto>=1.27",),
    "otel": ("opentelemetry-sdk>=1.27", "opentelemetry-exporter-otlp-proto-http>=1.27"),
}


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra. Raises KeyError for an unknown extra."""
    packages = " ".join(f"'{package}'" for package in PACKAGES[extra])
    return f"python -m pip install {packages}"
