"""StreamsGroupMemberMetadata (19) of `__consumer_offsets`: a member of a streams group."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int32, nullable, string, uint16, versions


class StreamsGroupMemberMetadataKey(Message, api_key=19, kind="coordinator-key", versions="0", flexible="none"):
    """The group and the member."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""
    member_id: Annotated[str, string, versions("0"), about("The member.")] = ""


class Endpoint(Struct):
    """An address for interactive queries."""

    host: Annotated[str, string, versions("0+"), about("The host.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("The port.")] = 0


class KeyValue(Struct):
    """A key and its value."""

    key: Annotated[str, string, versions("0+"), about("The key.")] = ""
    value: Annotated[str, string, versions("0+"), about("The value.")] = ""


class StreamsGroupMemberMetadataValue(Message, api_key=19, kind="coordinator-value", versions="0", flexible="0+"):
    """The member's identity and its process."""

    instance_id: Annotated[str | None, string, versions("0+"), nullable("0+"), about("Set by a static member.")] = ""
    rack_id: Annotated[str | None, string, versions("0+"), nullable("0+"), about("The member's rack.")] = ""
    client_id: Annotated[str, string, versions("0+"), about("The client's id.")] = ""
    client_host: Annotated[str, string, versions("0+"), about("The client's address.")] = ""
    rebalance_timeout_ms: Annotated[
        int, int32, versions("0+"), about("Maximum time to revoke tasks, in milliseconds.")
    ] = -1
    topology_epoch: Annotated[int, int32, versions("0+"), about("The epoch of the member's topology.")] = 0
    process_id: Annotated[
        str, string, versions("0+"), about("The process of the member; a process may have several members.")
    ] = ""
    user_endpoint: Annotated[
        Endpoint | None, versions("0+"), nullable("0+"), about("Endpoint of the process for interactive queries.")
    ] = None
    client_tags: Annotated[list[KeyValue], versions("0+"), about("Tags for rack-aware assignment.")] = []
