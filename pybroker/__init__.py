"""pybroker: Kafka without the JVM."""

from __future__ import annotations

from importlib.util import find_spec

__version__ = "0.1.0"

if find_spec("pybroker._native") is None:
    # Python imports from the current directory first: in a clone without a build, only the sources are there.
    raise ModuleNotFoundError(
        f"{__path__[0]} has no extension module pybroker._native: this clone is not built. Run Python in "
        f"another directory to import the installed pybroker, or build the clone with `make build`",
        name="pybroker._native",
    )
