"""Options of all suites, and the distribution of tests to processes (`pytest -n`)."""

from __future__ import annotations

import gc
import logging
import re
import signal
from collections.abc import Generator, Iterator

import hypothesis
import pytest

from pybroker.broker.loggers import KAFKA_NAMES, LOGGERS, LevelChange
from tests.support import durations
from tests.support import process_state as process_states
from tests.support.repository import ROOT

WAITING_ROOMS = ("spark", "chaos", "cluster", "conformance", "simulation")
"""Folders of slow tests, slowest first. They start first, so that no processor is idle at the end of a run."""

# The duration of an example depends on the machine, so it has no deadline.
hypothesis.settings.register_profile("pybroker", deadline=None)
hypothesis.settings.load_profile("pybroker")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write tests/transcripts/*.txt anew from what happens")
    parser.addoption("--times", action="store_true", help=f"print the slowest tests, and write {durations.FILE}")


def pytest_configure(config: pytest.Config) -> None:
    """Restore the handler of SIGINT: background jobs of a shell ignore it, and processes of tests would inherit that.

    Registers the clocks of `--times`.
    """
    if config.getoption("times"):
        config.pluginmanager.register(durations.CpuClock())
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(durations.Durations())
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the collected tests, about twenty thousand, and their modules from garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # Collect the oldest generation about as rarely as if it still contained the collected tests.
        gc.set_threshold(700, 10, 1000)
        gc.enable()


def _capacity(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT / "tests").parts[0]


def _has_session(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep the tests of a file in one process, for they share brokers, and all tests of the Spark session in one.

    Simulation tests are distributed one by one: they share nothing, and a file of them takes minutes.
    """
    # pytest-xdist accepts no brackets in a group.
    apart = re.sub(r"[][]", " ", item.name) if _capacity(item) == "simulation" else ""
    group = "spark" if _has_session(item) else f"{item.path}{apart}"
    item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With several processes, start the slow folders first. The order within a folder stays random.

    The tests of the Spark session start first, since one process runs all of them and takes the longest.

    Raises UsageError if pytest-xdist has ignored the groups: every process would start all servers.
    """
    if hasattr(config, "workerinput") and config.getoption("loadgroup") and not all("@" in one.nodeid for one in items):
        raise pytest.UsageError("pytest-xdist does not keep groups of tests together with this version of pytest")
    if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        ranks = {capacity: rank for rank, capacity in enumerate(WAITING_ROOMS)}
        items.sort(key=lambda item: -1 if _has_session(item) else ranks.get(_capacity(item), len(ranks)))


@pytest.fixture(autouse=True)
def process_state() -> Iterator[None]:
    """Restore process-wide state after each test, including the logger levels of all brokers."""
    root = logging.getLogger()
    before = root.level
    with process_states.restored():
        yield
    LOGGERS.change([LevelChange(name, None) for name in KAFKA_NAMES.values()])
    root.setLevel(before)
