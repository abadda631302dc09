"""Rules take a distinguished name to a principal's as Kafka's SslPrincipalMapper does."""

from __future__ import annotations

import pytest

from pybroker.security.principal_mapping import MappingError, NoRuleError, map_name, parse_rules

RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "principal"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("O=SME,CN=duke.x", "DUKE.X"),
        ("OU=SME,O=mycp", "OU=SME,O=mycp"),
    ],
)
def test_the_first_rule_for_a_name_decides(name: str, principal: str) -> None:
    assert map_name(parse_rules(RULES), name) == principal


def test_a_name_without_a_rule_is_refused() -> None:
    with pytest.raises(NoRuleError):
        map_name(parse_rules("RULE:^CN=(.*)$/$1/"), "O=alice")


def test_a_reference_to_a_group_that_is_not_there_is_a_text() -> None:
    assert map_name(parse_rules("RULE:^CN=(.*)$/$1-$4/"), "CN=alice") == "alice-$4"
    many = "9" * 5000
    assert map_name(parse_rules(f"RULE:^CN=(.*)$/$1{many}-$4{many}/"), "CN=alice") == f"alice{many}-$4{many}"


def test_a_part_of_a_name_is_no_match() -> None:
    with pytest.raises(NoRuleError):
        map_name(parse_rules("RULE:CN=alice/admin/"), "CN=alice,OU=others")


@pytest.mark.parametrize(
    "text", ["default", "RULE:a/b", "RULE:a/b/X", "DEFAULT DEFAULT", "RULE:(a/b/", r"RULE:(?=a)/b/"]
)
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(MappingError):
        parse_rules(text)
