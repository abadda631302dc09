"""A test program on KafkaJS, a Kafka client in JavaScript, that writes and reads one record."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from pybench.checkout import build_directory, building
from tests.support.programs import lacking
from tests.support.repository import ROOT

VERSION = "2.2.4"
_PROGRAM = ROOT / "tests/support/js/roundtrip.js"


def roundtrip(server: str, topic: str, authority: Path, mechanism: str, password: str, timeout_s: float = 60) -> str:
    """Write a record over SASL_SSL as alice and read it again. Returns the value read, or the text of the error."""
    for name in ("node", "npm"):
        if shutil.which(name) is None:
            lacking(f"{name} is not on the search path: install it (Debian: apt-get install nodejs npm)")
    modules = build_directory() / "kafkajs"
    with building():
        if not (modules / "node_modules/kafkajs").exists():
            modules.mkdir(parents=True, exist_ok=True)
            words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(modules), f"kafkajs@{VERSION}"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                lacking(f"npm cannot install kafkajs {VERSION}: {done.stderr.strip()[-300:]}")
    requested = {
        "modules": str(modules / "node_modules/kafkajs"),
        "server": server,
        "topic": topic,
        "authority": str(authority),
        "mechanism": mechanism.lower(),
        "password": password,
    }
    words = ["node", str(_PROGRAM), json.dumps(requested)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, check=False)
    return ended.stdout.strip() or ended.stderr.strip()
