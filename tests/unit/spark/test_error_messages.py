"""What findings say about errors of Spark and Java."""

from __future__ import annotations

import pytest

from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.queries.failures import cannot_connect, fails_again, is_connection_lost
from sqlstream.spark.writing.databases.database import DatabaseError


def test_an_error_is_never_without_a_message() -> None:
    """A text that is all stack trace is shortened to its first line, and an empty one becomes the error's class."""
    assert read_error(RuntimeError("at org.apache.Hadoop\n\tat org.apache.Iceberg")).message == "at org.apache.Hadoop"
    assert read_error(RuntimeError("")).message == "RuntimeError"


@pytest.mark.parametrize(
    ("state", "is_refused", "is_busy", "is_final"),
    [
        ("3D000", True, False, True),
        ("42000, error 1049", True, False, True),  # no such database
        ("42000, error 1142", True, False, True),  # a missing right
        ("42000, error 1064", False, False, True),  # a statement that MariaDB cannot parse
        ("42000, error 1226", False, True, False),  # the user has too many connections
        ("53300", False, True, False),
        ("40001, error 1213", False, False, False),  # a deadlock
    ],
)
def test_the_code_of_a_database_decides_what_its_state_means(
    state: str, is_refused: bool, is_busy: bool, is_final: bool
) -> None:
    """MariaDB's SQLSTATE 42000 has many meanings; only with its code it is a missing database or a missing right."""
    error = DatabaseError(f"MariaDB at db reports: no [SQLSTATE {state}]", state)

    assert (cannot_connect(error), is_connection_lost(error), fails_again(error)) == (is_refused, is_busy, is_final)
