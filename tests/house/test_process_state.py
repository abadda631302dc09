"""A test that changes what all tests of a process share leaves it as it was."""

from __future__ import annotations

import gc
import logging
import os
import signal

import pytest

from pybroker.cli.main import main
from tests.support.process_state import restored


def test_what_a_test_changes_is_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    root, name, path = logging.getLogger(), "PYBROKER_OF_ONE_TEST", os.environ["PATH"]
    before = (gc.isenabled(), gc.get_threshold(), signal.getsignal(signal.SIGTERM), root.manager.disable)
    handlers = list(root.handlers)
    with restored():
        with pytest.raises(SystemExit):
            main(["topics", "--help-me"])
        assert not gc.isenabled(), "a command makes no garbage to look for"
        gc.set_threshold(5)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        logging.disable(logging.CRITICAL)
        root.addHandler(logging.NullHandler())
        os.environ[name], os.environ["PATH"] = "set", ""
    assert (gc.isenabled(), gc.get_threshold(), signal.getsignal(signal.SIGTERM), root.manager.disable) == before
    assert root.handlers == handlers
    assert (name in os.environ, os.environ["PATH"]) == (False, path)
