from __future__ import annotations

import subprocess
import sys

from pybroker.cli.service.deadline import DEADLINE_STATUS, begin_deadline

HANGS = """
import logging, threading
from pybroker.cli.service.deadline import begin_deadline
logging.basicConfig()
begin_deadline(0.01)
threading.Event().wait()
"""


def test_a_stop_that_hangs_ends_hard_and_says_so() -> None:
    ran = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == DEADLINE_STATUS
    assert "the stop has taken 0.01 s: killing the process; the next start recovers the logs" in ran.stderr


def test_no_seconds_are_no_deadline() -> None:
    assert begin_deadline(0) is None
