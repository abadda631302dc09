"""Every command of `pybroker` that README or a guide prints has options and arguments that there are.

This holds for the commands that no test runs, too, such as those for another machine.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest

from pybroker.cli.main import COMMANDS
from pybroker.cli.parsers import build_parser, module_of
from tests.support import guides

ENDS = {"|", "||", "&", "&&", ";", ">", "<", "(", ")", ");"}


def printed_commands() -> Iterator[tuple[str, list[str]]]:
    """Each command line that begins with `pybroker`, by the block that prints it, without what the shell does."""
    for page in guides.pages():
        for block in guides.blocks(page):
            if block.language == "sh":
                yield from ((str(block), words) for words in commands_of(block.code))


def commands_of(code: str) -> Iterator[list[str]]:
    code = code.replace("\\\n", " ")
    for name, text in re.findall(r'^(\w+)="(.*)"$', code, re.MULTILINE):
        code = code.replace(f"${name}", text)
    for inner in re.findall(r"\$\((pybroker [^)]*)\)", code):
        yield from commands_of(inner)
        code = code.replace(f"$({inner})", "1")
    for line in filter(re.compile(r"(^|[ /])pybroker ").search, code.splitlines()):
        lexer = shlex.shlex(re.sub(r"\s#.*", "", line), posix=True, punctuation_chars=True)
        lexer.wordchars += "$={}[],:@%"
        words: list[str] = []
        for word in [*lexer, ";"]:
            if word not in ENDS:
                words.append(word)
                continue
            found = next((index for index, one in enumerate(words) if one.rpartition("/")[2] == "pybroker"), None)
            if found is not None and found + 1 < len(words) and words[found + 1] in COMMANDS:
                yield words[found + 1 :]
            words = []


PRINTED = list(printed_commands())


@pytest.mark.parametrize(("where", "words"), PRINTED, ids=[f"{where} {words[0]}" for where, words in PRINTED])
def test_a_printed_command_is_one(where: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parser = build_parser(words[0], module_of(words[0]))
    try:
        parsed = parser.parse_args(words[1:])
    except SystemExit:
        pytest.fail(f"{where}: {capsys.readouterr().err}")
    assert parsed is not None


def test_the_commands_are_found() -> None:
    """Those of the first page of commands, and as many as the pages have at least."""
    assert len(PRINTED) >= 60
    readme = [words[0] for where, words in PRINTED if where.startswith("README.md:")]
    assert readme[:3] == ["start", "topics", "stop"]
    assert list(commands_of('id=$(pybroker random-uuid)\nask="--list"\n./x/pybroker topics $ask --topic=a | head')) == [
        ["random-uuid"],
        ["topics", "--list", "--topic=a"],
    ]
