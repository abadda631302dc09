"""Tables of numbers that Rust and Python both have say the same: error codes, API keys, versions."""

from __future__ import annotations

import re

from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.errors import ErrorCode
from tests.support import repository

ERROR_CODE = re.compile(r"^    (\w+) = (-?\d+), (true|false);$", re.MULTILINE)
API_KEY = re.compile(r"^    pub const (\w+): Self = Self\((\d+)\);$", re.MULTILINE)


def test_error_codes_have_the_same_number_name_and_retry_in_both_languages() -> None:
    rows = ERROR_CODE.findall(repository.text("native/wire/src/error_code.rs"))
    native = [(name, int(code), retriable == "true") for name, code, retriable in rows]
    assert native == [(code.name, int(code), code.retriable) for code in ErrorCode]


def test_api_keys_of_native_code_are_those_of_the_protocol() -> None:
    native = {name: int(key) for name, key in API_KEY.findall(repository.text("native/wire/src/api_key.rs"))}
    assert native.keys() >= {"PRODUCE", "FETCH"}
    assert native == {name: int(ApiKey[name]) for name in native}


def test_no_other_room_has_a_table_of_error_codes() -> None:
    constant = re.compile(r"const (\w+): i16\b")
    names = {code.name for code in ErrorCode}
    others = [
        f"{path}: {name}"
        for path in repository.rust_sources()
        for name in constant.findall(repository.text(path))
        if name in names
    ]
    assert others == []
