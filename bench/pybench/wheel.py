"""The wheel of pybroker: packed from what `make build` compiled, and installed alone.

Owns the commands of maturin and uv. Knows no broker: `tests/cluster/test_wheel.py` runs one from an installed wheel.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pybench.checkout import ROOT
from pybench.peers.errors import ArtefactError

_PROGRAMS = Path(sys.executable).parent


def pack_wheel(directory: Path) -> Path:
    """Pack the wheel into `directory`, tagged for the oldest glibc that the extension runs on; returns its path.

    Compiles nothing after `make build`. Raises ArtefactError, also where the extension needs more than a manylinux or
    musllinux tag promises.
    """
    words = [str(_PROGRAMS / "maturin"), "build", "--release", "--quiet", "--compatibility", "pypi"]
    _run([*words, "--interpreter", sys.executable, "--out", str(directory)])
    (wheel,) = directory.glob("*.whl")
    return wheel


def install_alone(wheel: Path, environment: Path) -> Path:
    """Make a virtual environment of the wheel and its declared dependencies, no more; returns the folder of programs.

    Raises ArtefactError.
    """
    _run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    programs = environment / "bin"
    words = [str(_PROGRAMS / "uv"), "pip", "install", "--quiet", "--compile-bytecode"]
    _run([*words, "--python", str(programs / "python"), str(wheel)])
    return programs


def _run(words: list[str]) -> None:
    """Run a command in the checkout. Raises ArtefactError."""
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ArtefactError(f"{words[0]} ended with status {done.returncode}: {done.stderr.strip()[-1500:]}")
