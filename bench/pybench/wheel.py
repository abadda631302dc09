"""The wheel of pybroker: packed from the output of `make build`, installed alone, and measured in size and import time.

Owns the commands of maturin and uv. Knows no broker: `tests/cluster/test_wheel.py` runs one from an installed wheel.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pybench.checkout import ROOT
from pybench.peers.errors import ArtefactError

_PROGRAMS = Path(sys.executable).parent
_IMPORTS = {"import_client_ms": "pybroker.client", "import_broker_ms": "pybroker.node"}
"""Figures and the modules whose import time they are."""


def pack_wheel(directory: Path, *, profile: str = "release", features: Sequence[str] = ()) -> Path:
    """Pack the wheel into `directory`, tagged for the oldest supported glibc. Returns its path.

    `profile` is cargo's profile, `features` are in addition to the extension's defaults. Compiles nothing if
    `make build` has used the same profile and features. Raises ArtefactError, also if the extension violates the
    manylinux or musllinux policy.
    """
    words = [str(_PROGRAMS / "maturin"), "build", "--profile", profile, "--quiet", "--compatibility", "pypi"]
    words += ["--features", ",".join(features)] if features else []
    _run([*words, "--interpreter", sys.executable, "--out", str(directory)])
    (wheel,) = directory.glob("*.whl")
    return wheel


def install_alone(wheel: Path, environment: Path) -> Path:
    """Create a virtual environment of only the wheel and its declared dependencies. Returns its directory of programs.

    Raises ArtefactError.
    """
    _run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    programs = environment / "bin"
    words = [str(_PROGRAMS / "uv"), "pip", "install", "--quiet", "--compile-bytecode"]
    _run([*words, "--python", str(programs / "python"), str(wheel)])
    return programs


def measure_wheel() -> tuple[str, dict[str, float]]:
    """Pack, install and import once. Returns command and figures, in bytes and milliseconds. Raises ArtefactError."""
    with tempfile.TemporaryDirectory(prefix="pybench-wheel-") as folder:
        wheel = pack_wheel(Path(folder) / "dist")
        begun = time.monotonic()
        programs = install_alone(wheel, Path(folder) / "environment")
        elapsed = time.monotonic() - begun
        (packages,) = (Path(folder) / "environment" / "lib").glob("python*/site-packages")
        parts = [packages / "pybroker", *packages.glob("pybroker-*.dist-info")]
        figures = {
            "wheel_bytes": float(wheel.stat().st_size),
            "installed_bytes": float(sum(map(_bytes_below, parts))),
            "with_dependencies_bytes": float(_bytes_below(packages)),
            **{figure: _import_ms(programs / "python", module) for figure, module in _IMPORTS.items()},
        }
    return f"pip install {wheel.name}", {**figures, "records": 1, "seconds": elapsed}


def _import_ms(python: Path, module: str) -> float:
    """Return the duration of `import module` in a new interpreter, in milliseconds, measured by `-X importtime`."""
    said = _run([str(python), "-I", "-X", "importtime", "-c", f"import {module}"])
    *_, last = said.splitlines()
    _, cumulative_us, _ = last.split("|")
    return int(cumulative_us) / 1e3


def _bytes_below(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def _run(words: list[str]) -> str:
    """Run a command in the checkout. Returns its standard error."""
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ArtefactError(f"{words[0]} ended with status {done.returncode}: {done.stderr.strip()[-1500:]}")
    return done.stderr
