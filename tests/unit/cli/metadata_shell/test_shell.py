from __future__ import annotations

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.metadata_shell.image_tree import Tree
from pybroker.cli.metadata_shell.shell import Shell

TREE: Tree = {"a": {"b": "text", "c": {"d": "deep", "": "own"}}, "e": "f"}


def shown(*lines: str) -> list[str]:
    """What a shell shows for lines one after the other."""
    printed: list[str] = []
    shell = Shell(TREE, printed.append)
    for line in lines:
        shell.run_line(line)
    return printed


@pytest.mark.parametrize(
    ("lines", "printed"),
    [
        (["ls"], ["a", "e"]),
        (["ls a e"], ["e", "\na:", "b", "c"]),
        (["ls /a/c"], ["d"]),
        (["ls x"], ["ls: x: no such file or directory."]),
        (["cat a/b"], ["text"]),
        (["cat a/*"], ["text", "own"]),
        (["cat a"], ["cat: a: Is a directory."]),
        (["cd a/c", "pwd", "cat d", "cd ..", "pwd", "cd", "pwd"], ["/a/c", "deep", "/a", "/"]),
        (["cd e"], ["cd: e: not a directory."]),
        (["find a"], ["/a", "/a/b", "/a/c", "/a/c/d"]),
        (["tree a"], ["b:", "  text", "c:", "  own", "  d:", "    deep"]),
        (["ls ../../.."], ["a", "e"]),
        ([""], []),
    ],
)
def test_a_tree_is_walked_as_a_file_system(lines: list[str], printed: list[str]) -> None:
    assert shown(*lines) == printed


@pytest.mark.parametrize(
    ("line", "words"), [("rm a", "rm: no such command"), ("cat", "expected"), ('ls "', "quotation")]
)
def test_what_no_command_is_is_refused(line: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        shown(line)
