"""sqlglot beside other users of it in the same process."""

from __future__ import annotations

import logging

import pytest
import sqlglot

from sqlstream.compiler.sql.parse import parse_sql

UNSUPPORTED = "show something nobody knows"
"""sqlglot logs that it falls back to a command."""


def test_only_sqlstreams_own_reading_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    """The logger and its level belong to the program."""
    parse_sql(UNSUPPORTED)
    assert not caplog.records
    assert logging.getLogger("sqlglot").level == logging.NOTSET

    sqlglot.parse_one(UNSUPPORTED, read="spark")
    assert [record.name for record in caplog.records] == ["sqlglot"]
