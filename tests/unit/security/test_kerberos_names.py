"""Rules take a Kerberos principal to a user's name as Kafka's KerberosShortNamer does."""

from __future__ import annotations

import pytest

from pybroker.config.security.kerberos import parse_local_rules
from pybroker.security.kerberos_names import NoLocalNameError, local_name

REALM = "REALM.COM"
PLAIN = (r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g", r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g", "DEFAULT")
LOWER = (
    "RULE:[1:$1]/L",
    "RULE:[2:$1](Test.*)s/ABC///L",
    "RULE:[2:$1](ABC.*)s/ABC/XYZ/g/L",
    r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g/L",
    "RULE:[2:$1]/L",
    "DEFAULT",
)
UPPER = tuple(rule.replace("/L", "/U") for rule in LOWER)


# The cases of Kafka's KerberosNameTest.
@pytest.mark.parametrize(
    ("rules", "principal", "name"),
    [
        (PLAIN, "App.service-name/example.com@REALM.COM", "service-name"),
        (PLAIN, "App.service-name@REALM.COM", "service-name"),
        (PLAIN, "user/host@REALM.COM", "user"),
        (LOWER, "User@REALM.COM", "user"),
        (LOWER, "TestABC/host@FOO.COM", "test"),
        (LOWER, "ABC_User_ABC/host@FOO.COM", "xyz_user_xyz"),
        (LOWER, "App.SERVICE-name/example.com@REALM.COM", "service-name"),
        (LOWER, "User/root@REALM.COM", "user"),
        (UPPER, "User@REALM.COM", "USER"),
        (UPPER, "TestABC/host@FOO.COM", "TEST"),
        (UPPER, "ABC_User_ABC/host@FOO.COM", "XYZ_USER_XYZ"),
        (UPPER, "App.SERVICE-name/example.com@REALM.COM", "SERVICE-NAME"),
        (UPPER, "User/root@REALM.COM", "USER"),
    ],
)
def test_the_first_rule_for_a_principal_decides(rules: tuple[str, ...], principal: str, name: str) -> None:
    assert local_name(principal, parse_local_rules(rules), REALM) == name


@pytest.mark.parametrize(
    ("rule", "principal", "name"),
    [
        ("RULE:[2:$2-$1.$0]", "a/b@c", "b-a.c"),
        ("RULE:[1:$1]s/a/b/", "aaa@x", "baa"),
        ("RULE:[1:$1]s/a/b/g", "aaa@x", "bbb"),
        ("RULE:[1:$1](a)", "a@x", "a"),
        ("DEFAULT", "alice", "alice"),
    ],
)
def test_a_rule_fills_its_format_and_replaces_what_it_says(rule: str, principal: str, name: str) -> None:
    assert local_name(principal, parse_local_rules([rule]), REALM) == name


@pytest.mark.parametrize(
    ("rule", "principal"),
    [
        ("DEFAULT", "alice@OTHER.COM"),  # another realm's alice is nobody here
        ("RULE:[1:$1](ali)", "alice@REALM.COM"),
        ("RULE:[1:$1]", "alice/admin@REALM.COM"),
        ("RULE:[1:$1@$0]", "alice@REALM.COM"),
        ("RULE:[2:$1/$2]", "alice/admin@REALM.COM"),
        ("RULE:[1:$1]s/.*//", "alice@REALM.COM"),
        ("DEFAULT", "alice/a/b@REALM.COM"),
        ("DEFAULT", "admin\\@OTHER@REALM.COM"),
        ("DEFAULT", "alice@REALM.COM@OTHER"),
        ("DEFAULT", "alice/admin"),
    ],
)
def test_who_has_no_rule_or_no_simple_name_is_nobody(rule: str, principal: str) -> None:
    with pytest.raises(NoLocalNameError):
        local_name(principal, parse_local_rules([rule]), REALM)
