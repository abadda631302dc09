"""A module imports at its top what it uses, so that a reader sees it there and a start fails at once."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

from tests.support import repository

#: Packages that an extra brings: a module that works without them imports them where they are used.
OF_EXTRAS = {
    "confluent_kafka",
    "cryptography",
    "google",
    "gssapi",
    "jwt",
    "numpy",
    "opentelemetry",
    "polars",
    "pyarrow",
    "pyspark",
    "rich",
    "rocksdict",
    "shtab",
}
#: Other modules that import in functions, and why. This list may only shrink.
LATE = {
    "pybroker/node/exporting.py": "the module of OpenTelemetry needs an extra",
    "pybroker/testing/plugin.py": "pytest loads the plugin in each of its runs, also of projects that use no broker",
    "pybroker/testing/security.py": "the module of certificates needs an extra",
    "spark/pybroker_spark/__init__.py": "each executor imports the package; what a driver calls is loaded there",
    "spark/pybroker_spark/audit/job.py": "needs a session of Spark, which the command line checks first",
    "spark/pybroker_spark/command.py": "a command loads no other command",
}


def late_imports(path: str) -> Iterator[str]:
    """Yield the packages that functions of a module import."""
    for function in ast.walk(repository.tree(path)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    yield str(node.module)
                elif isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)


def test_functions_import_what_an_extra_brings_and_nothing_else() -> None:
    paths = [
        *repository.files_under("pybroker", suffix=".py"),
        *repository.files_under("spark/pybroker_spark", suffix=".py"),
    ]
    found = {path for path in paths for name in late_imports(path) if name.split(".")[0] not in OF_EXTRAS}
    assert sorted(found - LATE.keys()) == [], "import it at the top of the module"
    assert sorted(LATE.keys() - found) == [], "take it out of the list"


#: Modules that cannot be imported without an extra, or without pytest.
NEED_AN_EXTRA = ["pybroker.metrics.opentelemetry", "pybroker.testing.certificates", "pybroker.testing.plugin"]
#: Prints the modules that cannot be imported where the packages named by the arguments are missing.
WITHOUT = """
import importlib, pkgutil, sys

class Missing:
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import pybroker
for module in pkgutil.walk_packages(pybroker.__path__, "pybroker."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError:
            print(module.name)
"""


def test_modules_are_imported_without_the_extras() -> None:
    words = [sys.executable, "-c", WITHOUT, *sorted(OF_EXTRAS), "pytest"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == NEED_AN_EXTRA
