"""The packages that parts of pybroker need beside it, by the extra that names them in `pyproject.toml`.

Owns which command a message names. A package has its own name there: pybroker may come from a clone or from
a wheel, and `pip install 'pybroker[cli]'` finds it only where an index has it.
"""

from __future__ import annotations

PACKAGES = {
    "cli": ("rich>=13", "shtab>=1.8"),
    "oauth": ("pyjwt[crypto]>=2.10",),
    "gssapi": ("gssapi>=1.8",),
    "testing": ("cryptography>=42",),
    "telemetry": ("opentelemetry-proto>=1.27",),
    "otel": ("opentelemetry-sdk>=1.27", "opentelemetry-exporter-otlp-proto-http>=1.27"),
}


def install_command(extra: str) -> str:
    """Return the command that installs the packages of an extra; raises KeyError for one that there is not."""
    packages = " ".join(f"'{package}'" for package in PACKAGES[extra])
    return f"python -m pip install {packages}"
