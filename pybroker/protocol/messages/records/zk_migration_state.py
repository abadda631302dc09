"""The metadata record ZkMigrationStateRecord (21)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int8, versions


class ZkMigrationStateRecord(Message, api_key=21, kind="metadata", versions="0", flexible="0+"):
    """The state of a migration from ZooKeeper (until Kafka 3.9)."""

    zk_migration_state: Annotated[int, int8, versions("0+"), about("The state.")] = 0
