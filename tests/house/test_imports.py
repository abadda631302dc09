"""A module imports at its top what it uses, so that a reader sees it there and a start fails at once."""

from __future__ import annotations

import ast
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
    "shtab",
}
#: Other modules that import in functions, and why. This list may only shrink.
LATE = {
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
