"""RaftMessages (10001): Raft messages between voters of the metadata quorum, on the controller listener only.

Kafka has no such API. The key is outside the range of Kafka's own keys.
"""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    ignorable,
    int16,
    int32,
    octets,
    string,
    tag,
    uint16,
    uuid,
    versions,
)


class Listener(Struct):
    """A listener of the sender."""

    name: Annotated[str, string, versions("0+"), about("The listener's name.")] = ""
    host: Annotated[str, string, versions("0+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("Port to connect to.")] = 0


class RaftMessagesRequest(Message, api_key=10001, kind="request", versions="0", flexible="0+"):
    """Sends Raft messages from one voter to another, in order."""

    cluster_id: Annotated[str, string, versions("0+"), about("The cluster that the sender belongs to.")] = ""
    from_id: Annotated[int, int32, versions("0+"), about("Node id of the sender.")] = 0
    from_directory_id: Annotated[
        bytes, uuid, versions("0+"), about("Id of the directory of the sender's metadata log.")
    ] = bytes(16)
    to_id: Annotated[
        int,
        int32,
        versions("0+"),
        about("Node id of the voter that the messages are for; -1 where the sender's address is all, for any."),
    ] = 0
    messages: Annotated[
        list[bytes], octets, versions("0+"), about("The messages, in the form of `native/quorum/src/message.rs`.")
    ] = []
    listeners: Annotated[
        list[Listener],
        versions("0+"),
        tag(0, "0+"),
        ignorable,
        about("Where the sender is reached, for those who may not know it; empty otherwise."),
    ] = []


class RaftMessagesResponse(Message, api_key=10001, kind="response", versions="0", flexible="0+"):
    """Whether the messages were accepted. Replies to them are separate messages in the other direction."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where they were taken.")] = 0
    leader_id: Annotated[
        int, int32, versions("0+"), about("Id of the leader as far as the receiver knows, -1 for none.")
    ] = -1
    leader_epoch: Annotated[int, int32, versions("0+"), about("The newest leader epoch that the receiver knows.")] = 0
    leader_host: Annotated[
        str, string, versions("0+"), tag(0, "0+"), ignorable, about("Where the leader is reached, where voters change.")
    ] = ""
    leader_port: Annotated[
        int, int32, versions("0+"), tag(1, "0+"), ignorable, about("Port of the leader's listener of controllers.")
    ] = 0
