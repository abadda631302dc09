"""StreamsGroupMetadata (17) of `__consumer_offsets`: the epoch of a streams group."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int32, int64, nullable, string, tag, versions


class StreamsGroupMetadataKey(Message, api_key=17, kind="coordinator-key", versions="0", flexible="none"):
    """The group."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""


class LastAssignmentConfig(Struct):
    """A configuration of the last assignment."""

    key: Annotated[str, string, versions("0+"), about("The key.")] = ""
    value: Annotated[str, string, versions("0+"), about("The value.")] = ""


class StreamsGroupMetadataValue(Message, api_key=17, kind="coordinator-value", versions="0", flexible="0+"):
    """The group's epoch, and the state of its topology."""

    epoch: Annotated[int, int32, versions("0+"), about("The group's epoch.")] = 0
    metadata_hash: Annotated[int, int64, versions("0+"), about("Hash of the topics of the topology.")] = 0
    validated_topology_epoch: Annotated[
        int, int32, versions("0+"), tag(0, "0+"), about("Epoch of the topology whose topics are valid; -1 for none.")
    ] = -1
    last_assignment_configs: Annotated[
        list[LastAssignmentConfig] | None,
        versions("0+"),
        nullable("0+"),
        tag(1, "0+"),
        about("Configuration of the last assignment."),
    ] = []
    stored_description_topology_epoch: Annotated[
        int,
        int32,
        versions("0+"),
        tag(2, "0+"),
        about("Epoch of the topology whose description is stored; -1 for none."),
    ] = -1
    failed_description_topology_epoch: Annotated[
        int,
        int32,
        versions("0+"),
        tag(3, "0+"),
        about("Epoch of the topology whose description was rejected; -1 for none."),
    ] = -1
