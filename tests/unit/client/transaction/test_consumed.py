"""What the arguments of `send_offsets_to_transaction` mean, and which consumers it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import SettingError
from pybroker.client.settings import ConsumerSettings
from pybroker.client.transaction.consumed import Consumed, consumed_by, offsets_of
from pybroker.client.transaction.group_metadata import GroupMetadata

PARTITION = TopicPartition("t", 0)
MEMBER = GroupMetadata("g", "m", 4, "i")


def settings(**properties: Any) -> ConsumerSettings:
    named = {key.replace("_", "."): value for key, value in properties.items()}
    return ConsumerSettings.from_properties({"bootstrap.servers": "any:1", **named})


class Reading:
    """A consumer that has read to offset 9."""

    def consumed(self) -> Consumed:
        return Consumed({PARTITION: OffsetAndMetadata(9)}, MEMBER)


def test_a_consumer_says_what_it_has_read_and_as_whom() -> None:
    assert offsets_of(Reading(), None) == Consumed({PARTITION: OffsetAndMetadata(9)}, MEMBER)
    own = settings(group_id="g", enable_auto_commit=False)
    assert consumed_by(own, {PARTITION: OffsetAndMetadata(9)}, ("m", 4, "i")) == offsets_of(Reading(), None)


def test_offsets_are_numbers_or_have_metadata_and_a_group_is_a_name_or_a_member() -> None:
    assert offsets_of({PARTITION: 3}, "g") == Consumed({PARTITION: OffsetAndMetadata(3)}, GroupMetadata("g"))
    kept = {PARTITION: OffsetAndMetadata(3, "batch 7")}
    assert offsets_of(kept, MEMBER) == Consumed(kept, MEMBER)


def test_offsets_without_a_group_and_a_consumer_with_another_are_refused() -> None:
    with pytest.raises(SettingError, match="pass a consumer, or offsets and a group"):
        offsets_of({PARTITION: 3}, None)
    with pytest.raises(SettingError, match="group='h': the consumer determines the group"):
        offsets_of(Reading(), "h")


def test_a_consumer_that_commits_by_itself_or_for_nobody_is_refused() -> None:
    with pytest.raises(SettingError, match=r"enable\.auto\.commit=true"):
        consumed_by(settings(group_id="g"), {}, ("m", 4, None))
    with pytest.raises(SettingError, match=r"set group\.id"):
        consumed_by(settings(), {}, ("", -1, None))
