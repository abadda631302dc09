"""A Kerberos realm on loopback: MIT's KDC as a process, principals, and key tables.

Skips the test if the programs or the package `gssapi` are missing: pybroker itself needs no KDC.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.conditions import wait_until

REALM = "EXAMPLE.TEST"
INSTALL = (
    "a KDC is not here: apt-get install krb5-kdc krb5-admin-server libkrb5-dev gcc; python -m pip install gssapi "
    "(pybroker[gssapi])"
)
_SBIN = "/usr/sbin:/sbin"
_ENVIRONMENT = ("KRB5_CONFIG", "KRB5_KDC_PROFILE", "KRB5RCACHEDIR")


class Realm:
    """A realm with a running KDC. Libraries of this process find it through environment variables."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            "KRB5_CONFIG": str(directory / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5RCACHEDIR": str(directory),
        }

    @property
    def config(self) -> Path:
        """The path of krb5.conf."""
        return self.directory / "krb5.conf"

    def key_table(self, principal: str) -> Path:
        """Create a principal and return its key table."""
        path = self.directory / f"{principal.replace('/', '-')}.keytab"
        self.run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
        self.run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {path} {principal}")
        assert path.is_file(), principal
        return path

    def run(self, program: str, *words: str) -> None:
        """Run one of MIT's programs. Raises CalledProcessError if it fails."""
        command = [found(program), *words]
        subprocess.run(command, env={**os.environ, **self.environment}, check=True, capture_output=True, timeout=60)


def found(program: str) -> str:
    """Return the path of a program, also from the directories for root. Skips the test if it is missing."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:{_SBIN}")
    if path is None:
        pytest.skip(INSTALL)
    return path


@contextmanager
def realm(directory: Path) -> Iterator[Realm]:
    """Yield a realm with a running KDC. Skips the test if there is no KDC."""
    kdc = found("krb5kdc")
    if importlib.util.find_spec("gssapi") is None:
        pytest.skip(INSTALL)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    made = Realm(directory)
    made.config.write_text(
        f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n rdns = false\n"
        " dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
        f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
    )
    (directory / "kdc.conf").write_text(
        f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n"
        f"[realms]\n {REALM} = {{\n  database_name = {directory}/principals\n  key_stash_file = {directory}/stash\n"
        f"  acl_file = {directory}/acl\n }}\n[logging]\n kdc = FILE:{directory}/kdc.log\n"
        f" default = FILE:{directory}/kdc.log\n"
    )
    made.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "of a test")
    with pytest.MonkeyPatch.context() as patch:
        for name in _ENVIRONMENT:
            patch.setenv(name, made.environment[name])
        process = subprocess.Popen([kdc, "-n", "-r", REALM], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            wait_until(lambda: process.poll() is not None or _responses(port), within=60, what="the KDC listens")
            assert process.poll() is None, process.stderr and process.stderr.read()
            yield made
        finally:
            process.terminate()
            process.wait(60)
            if process.stderr is not None:
                process.stderr.close()


def _responses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=60).close()
    except OSError:
        return False
    return True
