"""Numbers as Java writes them, and whom the options of quotas name."""

from __future__ import annotations

import pytest

from pybroker.cli.quota_options import QuotaOwner, java_double
from pybroker.client.administration.quota_admin import ANY_NAME


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (12.5, "12.5"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (10_485_760.0, "1.048576E7"),
        (123456789012.5, "1.234567890125E11"),
        (2.0**63, "9.223372036854776E18"),
        (1e22, "1.0E22"),
        (0.001, "0.001"),
        (0.0005, "5.0E-4"),
        (float("inf"), "Infinity"),
    ],
)
def test_a_number_is_written_as_by_java(value: float, text: str) -> None:

    assert java_double(value) == text


def test_a_type_without_a_name_stands_for_all_of_it_and_an_empty_name_for_the_default() -> None:
    owner = QuotaOwner(("users", "clients"), ("",))
    assert owner.components() == {"user": None, "client-id": ANY_NAME}
    assert QuotaOwner(("ips",), ("10.0.0.1",)).entity() == {"ip": "10.0.0.1"}
