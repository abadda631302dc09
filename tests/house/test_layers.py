"""Who may know whom is a list, and the list is a test (style 1, 8, 11)."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support import repository
from tests.support.repository import ROOT

UNDRIVEN = {"asyncio", "time", "random", "socket", "secrets", "threading", "uvloop", "datetime"}


def lint_imports(config: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter with one configuration file."""
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--config", config, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_a_package_that_is_not_placed_in_the_order_fails_the_build(tmp_path: Path) -> None:
    source = repository.text("pyproject.toml")
    broken = re.sub(r'^ +"security",\n', "", source, flags=re.M)
    assert broken != source
    config = tmp_path / "pyproject.toml"
    config.write_text(broken)
    ran = lint_imports(config)
    assert ran.returncode != 0
    assert "security" in ran.stdout


def test_the_order_names_every_package() -> None:
    contracts = tomllib.loads(repository.text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in contracts if contract["type"] == "layers")
    placed = {name.strip() for layer in layers["layers"] for name in layer.split("|")}
    assert layers["exhaustive"] is True
    assert set(repository.python_packages()) <= placed


@pytest.mark.parametrize(
    "path", [path for path in repository.files_under("pybroker") if path.endswith(("/machine.py", "_machine.py"))]
)
def test_a_machine_reads_no_clock_rolls_no_dice_and_does_no_io(path: str) -> None:
    used = {name.split(".")[0] for _line, name in repository.imported_modules(path)}
    assert used & UNDRIVEN == set(), "time and randomness are arguments (style 8)"


DRIVERS = {
    "pybroker/controller/failure_detector.py": "connects to brokers that may have died",
    "pybroker/controller/node_to_controller.py": "connections to the active controller, and the tries over them",
    "pybroker/controller/quorum/driver.py": "the voter's ticks, and its disk",
    "pybroker/controller/quorum/observer.py": "the fetches of a node that follows the metadata log",
    "pybroker/controller/quorum/transport/peers.py": "connections to other voters",
    "pybroker/controller/quorum/transport/response_timer.py": "the time that another voter has for a response",
    "pybroker/controller/quorum/transport/secured_stream.py": "such a connection through TLS or SASL",
    "pybroker/controller/quorum/voters/voter_changes.py": "waits until a new voter has the log, and for commits",
    "pybroker/controller/quorum/voters/voter_maintenance.py": "tries until the leader knows this voter",
    "pybroker/coordinator/runtime/markers.py": "waits until markers are committed, and for how long",
    "pybroker/controller/registration.py": "tries until the metadata has this controller",
}
"""What meets the loop beside the services, and for what; machines never do."""


def test_coordinators_and_controllers_meet_asyncio_only_in_their_services_and_drivers() -> None:
    found = [
        f"{path}:{line}"
        for path in repository.files_under("pybroker/controller", "pybroker/coordinator", suffix=".py")
        if not path.endswith("/service.py") and path not in DRIVERS
        for line, name in repository.imported_modules(path)
        if name.split(".")[0] == "asyncio"
    ]
    assert found == [], (
        "the runner, service.py and DRIVERS are the only places where a machine meets the loop (style 11)"
    )


def test_metadata_images_are_frozen() -> None:
    thawed = []
    for path in repository.files_under("pybroker/metadata", suffix=".py"):
        for node in ast.walk(repository.tree(path)):
            if isinstance(node, ast.ClassDef) and node.name.endswith(("Image", "Registration")):
                how = [ast.unparse(decorator) for decorator in node.decorator_list]
                how += [ast.unparse(keyword) for keyword in node.keywords]
                if not any(re.search(r"frozen ?= ?True", one) for one in how):
                    thawed.append(f"{path}:{node.lineno} {node.name}")
    assert thawed == []
