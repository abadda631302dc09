"""Compiles the Cython kernels into `build/micro`, once for each version of their source and of Python."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from Cython.Compiler.Main import compile as compile_cython

SOURCE = Path(__file__).with_name("in_cython.pyx")
OUTPUT = Path(__file__).parents[2] / "build" / "micro"


def build() -> Path:
    """The compiled module, made anew if it is older than its source."""
    module = OUTPUT / f"in_cython{sysconfig.get_config_var('EXT_SUFFIX')}"
    if module.exists() and module.stat().st_mtime > SOURCE.stat().st_mtime:
        return module
    OUTPUT.mkdir(parents=True, exist_ok=True)
    code = OUTPUT / "in_cython.c"
    compile_cython(str(SOURCE), output_file=str(code))  # type: ignore[no-untyped-call,unused-ignore]
    compiler = str(sysconfig.get_config_var("CC")).split()
    include = sysconfig.get_path("include")
    subprocess.run(
        [*compiler, "-O3", "-march=native", "-fPIC", "-shared", f"-I{include}", str(code), "-o", str(module)],
        check=True,
    )
    return module


if __name__ == "__main__":
    sys.stdout.write(f"{build()}\n")
