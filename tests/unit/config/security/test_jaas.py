"""JAAS texts, as Kafka's parser reads them."""

from __future__ import annotations

import pytest

from pybroker.config.security.jaas import JaasError, LoginModule, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{PLAIN} required user_alice="a b";', {"user_alice": "a b"}),
        (f"{PLAIN} REQUIRED username='x' password='it\"s' ;", {"username": "x", "password": 'it"s'}),
        (f'{PLAIN} required a="say \\"x\\"; \\\\ = \\t" b=plain;', {"a": 'say "x"; \\ = \t', "b": "plain"}),
        (f"// one\n{PLAIN} /* two */ required\n  a=b # ;", None),
        (f"{PLAIN} required;", {}),
    ],
)
def test_an_entry_has_a_module_a_flag_and_options(text: str, options: dict[str, str] | None) -> None:
    if options is None:
        with pytest.raises(JaasError):
            parse_jaas(text)
    else:
        assert parse_jaas(text) == (LoginModule(PLAIN, "required", options),)


def test_a_text_may_have_several_entries() -> None:
    modules = parse_jaas("a.A required x=1; b.B optional; // end")
    assert [(module.name, module.flag) for module in modules] == [("a.A", "required"), ("b.B", "optional")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no login module is specified"),
        ("// nothing", "no login module is specified"),
        ("a.A required", "not terminated by a semicolon"),
        ("a.A;", "the control flag of a.A is not specified"),
        ("a.A perhaps;", "not perhaps"),
        ('a.A required x="secret;', "a quote at character 16 is not closed"),
        ("a.A required x secret;", "an option of a.A is not name=value"),
        ("a.A required x=;", "an option of a.A is not name=value"),
        ("= required;", "begins without a login module"),
    ],
)
def test_what_is_wrong_is_said_without_a_value(text: str, words: str) -> None:
    with pytest.raises(JaasError, match=r".") as caught:
        parse_jaas(text)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
