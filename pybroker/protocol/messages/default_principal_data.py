"""DefaultPrincipalData: the principal of a forwarded request, in the encoding of Kafka's brokers."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, boolean, string, versions


class DefaultPrincipalData(Message, kind="data", versions="0", flexible="0+"):
    """A principal. In an Envelope, two bytes with the version precede it."""

    type: Annotated[str, string, versions("0+"), about("The principal's type, `User`.")] = ""
    name: Annotated[str, string, versions("0+"), about("The principal's name.")] = ""
    token_authenticated: Annotated[
        bool, boolean, versions("0+"), about("Whether it was authenticated by a delegation token.")
    ] = False
