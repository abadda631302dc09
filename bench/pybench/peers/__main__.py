"""`python -m pybench.peers`: one Apache Kafka node in the foreground, for trying things by hand."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from pybench.peers.kafka import Kafka


def main() -> None:
    """Run one node until interrupted or asked to end."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--directory", type=Path, help="data and log; default: a fresh one, removed at the end")
    parser.add_argument("--override", action="append", default=[], metavar="KEY=VALUE", help="a broker setting")
    options = parser.parse_args()
    with Kafka(options.directory, dict(o.split("=", 1) for o in options.override)) as kafka:
        print(f"{kafka.bootstrap_servers} pid {kafka.pid} data {kafka.log_directory}", flush=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            signal.pause()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
