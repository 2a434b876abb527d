"""sqlstream's use of sqlglot does not affect other users of sqlglot in the same process."""

from __future__ import annotations

import logging

import pytest
import sqlglot

from sqlstream.compiler.sql.sqlglot_tree import parse_sql

UNSUPPORTED = "show something nobody knows"
"""SQL for which sqlglot logs that it falls back to a command."""


def test_only_parsing_by_sqlstream_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    """Only sqlstream's own parsing is silent; the logger's level stays unchanged for the rest of the program."""
    parse_sql(UNSUPPORTED)
    assert not caplog.records
    assert logging.getLogger("sqlglot").level == logging.NOTSET

    sqlglot.parse_one(UNSUPPORTED, read="spark")
    assert [record.name for record in caplog.records] == ["sqlglot"]
