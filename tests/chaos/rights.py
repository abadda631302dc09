"""What this process may do to the system that it runs on: make namespaces with addresses, mount file systems.

Owns the tries, each of which leaves nothing. Both take root and, in a container, rights that root need not have.
"""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

from tests.chaos.network import Network, NetworkError


@functools.cache
def network_fault() -> str:
    """Return why no network of namespaces can be made here; empty where one can."""
    network = Network(1)
    try:
        network.begin()
    except NetworkError as error:
        return f"no network of namespaces can be made: {error}"
    network.end()
    return ""


@functools.cache
def mount_fault() -> str:
    """Return why no file system of a bounded size can be mounted here; empty where one can."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "disk"
        place.mkdir()
        for words in (("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)), ("umount", str(place))):
            try:
                done = subprocess.run(words, capture_output=True, text=True, check=False)
            except FileNotFoundError:
                return f"no disk of a bounded size can be mounted: {words[0]} is not installed"
            if done.returncode != 0:
                reported, _, _ = done.stderr.partition("\n")
                return f"no disk of a bounded size can be mounted: {reported}"
    return ""
