"""Process-wide state that a test may change, restored at the end of the test.

Levels of loggers and state set by `monkeypatch` are restored elsewhere.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The restored signals. SIGALRM belongs to pytest-timeout."""
_PYTESTS = "PYTEST_CURRENT_TEST"


@contextmanager
def restored() -> Iterator[None]:
    """Restore the garbage collector, signal handlers, the environment, and the root logger's handlers and limits.

    A command that runs in the test's process disables the garbage collector. It is enabled after each test, also if a
    fixture of the module ran the command.
    """
    root = logging.getLogger()
    threshold, limit = gc.get_threshold(), root.manager.disable
    actions = {number: signal.getsignal(number) for number in _SIGNALS}
    handlers, environment = list(root.handlers), _environment()
    try:
        yield
    finally:
        gc.enable()
        gc.set_threshold(*threshold)
        logging.disable(limit)
        for number, action in actions.items():
            if signal.getsignal(number) is not action:
                signal.signal(number, action)
        for handler in [one for one in root.handlers if one not in handlers]:
            root.removeHandler(handler)
        if (after := _environment()) != environment:
            for name in after.keys() - environment.keys():
                del os.environ[name]
            os.environ.update(environment)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != _PYTESTS}
