"""The peers with security: what a load is measured beside is there, and binds nobody who loads."""

from __future__ import annotations

from pathlib import Path

from pybench.peers.secured import OTHERS, QUOTAS, USER, Secured
from pybroker.client import Admin


def test_quotas_of_others_are_there_and_bind_nobody_who_loads(tmp_path: Path) -> None:
    with (
        Secured(QUOTAS, is_kafka=False, directory=tmp_path, overrides={}) as node,
        Admin(node.bootstrap_servers) as admin,
    ):
        entities = [entity for (entity,) in admin.describe_client_quotas()]
    assert len(entities) == 2 * OTHERS
    assert {kind for kind, _ in entities} == {"user", "client-id"}
    assert not {name for _, name in entities} & {None, USER, "rdkafka", "brokerload"}
