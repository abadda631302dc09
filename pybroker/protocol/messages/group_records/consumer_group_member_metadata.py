"""The record ConsumerGroupMemberMetadata (5) of `__consumer_offsets`: a member and its subscription (KIP-848)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    field,
    int32,
    nullable,
    octets,
    string,
    tag,
    versions,
)


class ConsumerGroupMemberMetadataKey(Message, api_key=5, kind="coordinator-key", versions="0", flexible="none"):
    """The group and the member."""

    group_id: Annotated[str, string, versions("0"), about("The group.")] = ""
    member_id: Annotated[str, string, versions("0"), about("The member.")] = ""


class ClassicProtocol(Struct):
    """An assignor that a member of the classic protocol supports."""

    name: Annotated[str, string, versions("0+"), about("The assignor's name.")] = ""
    metadata: Annotated[bytes, octets, versions("0+"), about("What the member sent it.")] = b""


class ClassicMemberMetadata(Struct):
    """The fields that only a member of the classic protocol has."""

    session_timeout_ms: Annotated[
        int, int32, versions("0+"), about("Silent for so many milliseconds it is taken for dead.")
    ] = 0
    supported_protocols: Annotated[
        list[ClassicProtocol], versions("0+"), about("The assignors it offered, the best first.")
    ] = []


class ConsumerGroupMemberMetadataValue(Message, api_key=5, kind="coordinator-value", versions="0", flexible="0+"):
    """The member's metadata and subscription, from its heartbeats."""

    instance_id: Annotated[str | None, string, versions("0+"), nullable("0+"), about("Set by a static member.")] = ""
    rack_id: Annotated[str | None, string, versions("0+"), nullable("0+"), about("The member's rack.")] = ""
    client_id: Annotated[str, string, versions("0+"), about("What its client calls itself.")] = ""
    client_host: Annotated[str, string, versions("0+"), about("Where it is, a slash before the address.")] = ""
    subscribed_topic_names: Annotated[list[str], string, versions("0+"), about("Topics it wants.")] = []
    subscribed_topic_regex: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Pattern of topics it wants.")
    ] = ""
    rebalance_timeout_ms: Annotated[
        int, int32, versions("0+"), about("How long it may take to give partitions back, in milliseconds.")
    ] = -1
    server_assignor: Annotated[str | None, string, versions("0+"), nullable("0+"), about("Assignor it wishes for.")] = (
        ""
    )
    classic_member_metadata: Annotated[
        ClassicMemberMetadata | None,
        versions("0+"),
        nullable("0+"),
        tag(0, "0+"),
        about("Null where it speaks the consumer protocol."),
    ] = field(default_factory=ClassicMemberMetadata)
