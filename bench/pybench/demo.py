"""The demo: `make demo` starts a broker, loads it with the perf tools, stops it and removes all files.

Owns the order of steps and the processes it starts, each ended by its id. Uses the product only through its console
scripts.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = Path(sys.executable).parent
TOPIC = "demo"
RECORDS = 5_000_000
RECORD_SIZE = 100
STOP_SECONDS = 60


class DemoError(Exception):
    """A step of the demo failed. The message contains the step and the log of the broker."""


@contextmanager
def running_broker(folder: Path) -> Iterator[str]:
    """Yield the address of a broker on a free loopback port with its data below `folder`. Stops it by SIGTERM."""
    log_path = folder / "broker.log"
    command = [str(PROGRAMS / "pybroker"), "start"]
    for setting in ("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={folder / 'data'}"):
        command += ["--override", setting]
    with log_path.open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        address = re.search(r"ready: \w+://(\S+)", ready)
        if address is None:
            raise DemoError(f"the broker did not start:\n{ready}{log_path.read_text()}")
        print(f"broker {process.pid} listens on {address[1]}, data in {folder / 'data'}", flush=True)
        yield address[1]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        process.stdout.close()
        print(f"broker {process.pid} stopped with status {status}", flush=True)
        if status != 0:
            sys.stderr.write(log_path.read_text()[-3000:])


def step(program: str, *arguments: str) -> None:
    """Print a command and run it with inherited output. Raises DemoError if it fails."""
    print(f"\n$ {program} {' '.join(arguments)}", flush=True)
    status = subprocess.run([PROGRAMS / program, *arguments], check=False).returncode
    if status != 0:
        raise DemoError(f"{program} {arguments[0]} ended with status {status}")


def run(folder: Path) -> None:
    """Run every step of the demo, with the broker's data and log in `folder`."""
    with running_broker(folder) as address:
        to_broker = ("--bootstrap-server", address)
        step("pybroker", "topics", *to_broker, "--create", "--topic", TOPIC)
        step(
            "pybench",
            *("producer-perf", *to_broker, "--topic", TOPIC),
            *("--num-records", str(RECORDS), "--record-size", str(RECORD_SIZE), "--throughput", "-1"),
        )
        step("pybench", "consumer-perf", *to_broker, "--topic", TOPIC, "--num-records", str(RECORDS))
        print()


def main() -> int:
    """Run the demo and always remove its folder. Returns the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = Path(tempfile.mkdtemp(prefix="pybroker-demo-"))
    try:
        run(folder)
    except DemoError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        shutil.rmtree(folder)
        print(f"the data was in {folder} ({size / 2**20:.0f} MiB) and is removed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
