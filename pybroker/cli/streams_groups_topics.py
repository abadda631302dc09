"""The internal topics of streams groups in `pybroker streams-groups`: which ones are deleted, and the outcome.

Owns the choice, which is that of Kafka 4.4's tool: only topics whose names follow from the group's id are deleted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pybroker.cli.kafka_exceptions import java_text
from pybroker.client.errors import BrokerError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.client.administration.admin import Admin

_ENDS = "-changelog", "-repartition", "-subscription-registration-topic", "-subscription-response-topic"
_OF_FOREIGN_KEYS = re.compile(r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-\d+-topic", re.ASCII)


def internal_topics(admin: Admin, group_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the internal topics of groups that have some, in the order of their topologies."""
    found: dict[str, list[str]] = {}
    for group_id, group in admin.describe_streams_groups(group_ids).items():
        sources = {name for part in group.subtopologies for name in part.source_topics}
        names = [
            topic.name
            for part in group.subtopologies
            for topic in (*part.repartition_source_topics, *part.state_changelog_topics)
            if topic.name not in sources
        ]
        for name in dict.fromkeys(names):
            if _is_inferred(name, group_id):
                found.setdefault(group_id, []).append(name)
            else:
                print(
                    f"\nError: The internal topic '{name}' is not inferred as internal and thus will not be deleted "
                    f"with the group '{group_id}'."
                )
    return found


def delete_after_reset(admin: Admin, group_id: str, names: Sequence[str]) -> None:
    """Delete internal topics of a group whose offsets are reset, and print an error."""
    try:
        admin.delete_topics(names)
    except BrokerError as error:
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            print(f"\nError: Deleting internal topics for group '{group_id}' failed because the topics do not exist.")
        else:
            print(f"\nError: Deleting internal topics for group '{group_id}' failed due to {java_text(error)}")


def delete_with_groups(admin: Admin, of_groups: dict[str, list[str]], deleted: Sequence[str]) -> None:
    """Delete the internal topics of deleted groups, and print the outcome."""
    failures = {}
    for group_id in deleted:
        try:
            if of_groups.get(group_id):
                admin.delete_topics(of_groups[group_id])
        except BrokerError as error:
            failures[group_id] = error
    if not of_groups or not deleted:
        return
    if not failures:
        names = "', '".join(group_id for group_id in deleted if group_id in of_groups)
        print(f"Deletion of associated internal topics of the streams groups ('{names}') was successful.")
        return
    print("Deletion of some associated internal topics failed:")
    for group_id, refused in failures.items():
        print(f"* Internal topics of the streams group '{group_id}' could not be deleted due to: {java_text(refused)}")


def _is_inferred(name: str, group_id: str) -> bool:
    """Return whether the name is one that Kafka Streams gives to an internal topic of the application."""
    is_internal = name.endswith(_ENDS) or _OF_FOREIGN_KEYS.fullmatch(name) is not None
    return name.startswith(f"{group_id}-") and is_internal
