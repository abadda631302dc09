"""Options of all suites, and which tests run in one process where several do (`pytest -n`)."""

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
"""Folders of tests that take long, the longest first: begun first, they leave no processor idle in the end."""

# How long an example takes is the machine's matter, and no assertion.
hypothesis.settings.register_profile("pybroker", deadline=None)
hypothesis.settings.load_profile("pybroker")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="write tests/transcripts/*.txt anew from what happens")
    parser.addoption("--times", action="store_true", help=f"print the slowest tests, and write {durations.FILE}")


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGINT act: a shell ignores it in what it runs in the background, and all that tests start would, too.

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
    """Leave what is collected, twenty thousand tests and their modules, out of every look for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        # The oldest generation is looked at about as seldom as where it still had all that was collected.
        gc.set_threshold(700, 10, 1000)
        gc.enable()


def _room(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT / "tests").parts[0]


def _has_session(item: pytest.Item) -> bool:
    return "spark" in getattr(item, "fixturenames", ())


def pytest_itemcollected(item: pytest.Item) -> None:
    """A file's tests stay together, for they share brokers; all that use the session of Spark do.

    Those of a simulation share nothing, and a file of them takes minutes.
    """
    # pytest-xdist takes no group with a bracket.
    apart = re.sub(r"[][]", " ", item.name) if _room(item) == "simulation" else ""
    group = "spark" if _has_session(item) else f"{item.path}{apart}"
    item.add_marker(pytest.mark.xdist_group(group))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Among several processes, the rooms that take long go first; within a room the order stays random.

    The tests of Spark's session go before all: one process runs them, and nothing that takes longer begins after them.

    Refuses to run where pytest-xdist has not taken note of the groups: every process would start all servers.
    """
    if hasattr(config, "workerinput") and config.getoption("loadgroup") and not all("@" in one.nodeid for one in items):
        raise pytest.UsageError("pytest-xdist does not keep groups of tests together with this version of pytest")
    if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        ranks = {room: rank for rank, room in enumerate(WAITING_ROOMS)}
        items.sort(key=lambda item: -1 if _has_session(item) else ranks.get(_room(item), len(ranks)))


@pytest.fixture(autouse=True)
def process_state() -> Iterator[None]:
    """Put back what all tests of a process share, as the levels of loggers of all its brokers."""
    root = logging.getLogger()
    before = root.level
    with process_states.restored():
        yield
    LOGGERS.change([LevelChange(name, None) for name in KAFKA_NAMES.values()])
    root.setLevel(before)
