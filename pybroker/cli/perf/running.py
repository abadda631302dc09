"""How the commands run the performance tools: what a tool meets becomes the one line that a command says.

Owns no measurement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.client import LatencyHistogram
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


def run_tool(main: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run a tool; returns its status. Raises CommandError."""
    try:
        # Without load generation in this build, this raises the error before the run starts.
        LatencyHistogram()
        return main(options)
    except (ClientError, ConfigError) as error:
        raise CommandError(str(error)) from None
