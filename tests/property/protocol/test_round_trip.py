"""Every message comes back from its bytes in every version, and bytes that are cut short are refused."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.schema import Message
from tests.property.protocol.strategies import messages
from tests.support.declarations import in_every_version

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize(("cls", "version"), in_every_version())
@FEW
@given(data=st.data())
def test_a_message_comes_back_from_its_bytes(cls: type[Message], version: int, data: st.DataObject) -> None:
    message = data.draw(messages(cls, version))
    encoded = encode(message, version)
    assert decode(cls, encoded, version) == (message, len(encoded))
    assert decode(cls, memoryview(b"before" + encoded + b"after"), version, 6) == (message, len(encoded))
    for end in range(len(encoded)):
        with pytest.raises(MalformedMessage):
            decode(cls, encoded[:end], version)


@pytest.mark.parametrize(("cls", "version"), in_every_version())
@FEW
@given(junk=st.binary(max_size=200))
def test_any_bytes_are_a_message_or_malformed(cls: type[Message], version: int, junk: bytes) -> None:
    try:
        message, size = decode(cls, junk, version)
    except MalformedMessage:
        return
    assert size <= len(junk)
    assert decode(cls, encode(message, version), version)[0] == message
