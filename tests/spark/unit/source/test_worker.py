"""Claims about how a worker process is set up."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import gc
from pybroker_spark.source.worker import freeze_loaded
freeze_loaded()
loaded = gc.get_freeze_count()
later = [[] for _ in range(1000)]
freeze_loaded()
assert loaded > 1000 and gc.get_freeze_count() == loaded, (loaded, gc.get_freeze_count())
"""


def test_what_is_loaded_before_the_first_read_is_not_looked_through_again_and_what_comes_later_is() -> None:
    assert subprocess.run([sys.executable, "-c", _SCRIPT], check=False).returncode == 0
