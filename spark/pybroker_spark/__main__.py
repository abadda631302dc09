"""`python -m pybroker_spark` is the command `pybroker-spark`."""

from __future__ import annotations

import sys

from pybroker_spark.command import main

sys.exit(main())
