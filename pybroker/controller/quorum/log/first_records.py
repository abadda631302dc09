"""The records that the first leader of a cluster commits first: those of `bootstrap.checkpoint`, else defaults.

Owns the selection of records of a formatted node. In a cluster of one node that was never formatted, a later leader
adds missing records (docs/adr/0021). Must not know how they are committed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.log.bootstrap import FILE_NAME
from pybroker.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    INITIAL_LEVELS,
    LEFT_OUT,
    METADATA_VERSION,
    RECORD_VERSIONS,
    SUPPORTED_FEATURES,
)
from pybroker.metadata.image import ScramImage
from pybroker.metadata.metadata_versions import NAMES
from pybroker.metadata.scram_delta import ScramDelta
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.user_scram_credential import UserScramCredentialRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pybroker.protocol.schema import Message

log = logging.getLogger("pybroker.controller")


def first_records(formatted: list[Message] | None, levels: Mapping[str, int]) -> list[Message]:
    """Return the records to commit in a cluster with these feature levels; a new cluster has none.

    `formatted` are the records of the file, None if there is no file. Raises `MetadataLogError` for records that this
    version does not support.
    """
    for name in sorted(LEFT_OUT & levels.keys()):
        if levels[name] > 0:
            log.warning("The cluster has feature %s at level %d, which this version does not use", name, levels[name])
    if formatted is not None:
        return [] if levels else list(_honoured(formatted))
    return [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in INITIAL_LEVELS.items()
        if name not in levels
    ]


def enables_eligible_replicas(records: Iterable[Message]) -> bool:
    """Return whether one of the records sets a level of eligible.leader.replicas.version."""
    return any(
        isinstance(record, FeatureLevelRecord) and record.name == ELIGIBLE_LEADER_REPLICAS_VERSION for record in records
    )


def first_users(formatted: list[Message] | None) -> ScramImage:
    """Return the SCRAM users among the records of the file."""
    users = ScramDelta(ScramImage())
    for record in formatted or ():
        if isinstance(record, UserScramCredentialRecord):
            users.apply(record)
    return users.build()


def _honoured(records: list[Message]) -> Iterator[Message]:
    for record in records:
        if not isinstance(record, FeatureLevelRecord):
            name = type(record).__name__
            if name not in RECORD_VERSIONS:
                raise MetadataLogError(f"{FILE_NAME} has a {name}, which this version cannot write")
            yield record
            continue
        name, level = record.name, record.feature_level
        if name not in SUPPORTED_FEATURES:
            log.warning(
                "%s sets feature %s to level %d, which this version does not know: ignoring it", FILE_NAME, name, level
            )
            continue
        lowest, highest = SUPPORTED_FEATURES[name]
        if not lowest <= level <= highest:
            hint = ""
            if name == METADATA_VERSION:
                hint = f"; format the node with --release-version {NAMES[highest].partition('-')[0]}"
            raise MetadataLogError(f"{FILE_NAME}: {name}={level}, expected a level from {lowest} to {highest}{hint}")
        yield record
