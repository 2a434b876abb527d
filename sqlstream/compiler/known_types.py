"""The types that sqlglot's parser compares others with, read once.

For each CAST its Hive parser asks whether the type is `char` or `varchar`, and reads these two words as SQL each time
(`HiveParser._parse_types` of sqlglot 30): a thirtieth of what compiling a project takes. Its classes are compiled and
cannot be changed; the function that they read with can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import sqlglot
from sqlglot import exp

_ASKED_FOR = frozenset({"char", "varchar"})
_known: dict[str, exp.Expr] = {}


@contextmanager
def types_read_once() -> Iterator[None]:
    """While the body runs, sqlglot gets copies of the types that it has read before."""
    parse = sqlglot.parse_one
    setattr(sqlglot, "parse_one", partial(_remembered, parse))  # noqa: B010 - mypy has no assignment to functions
    try:
        yield
    finally:
        setattr(sqlglot, "parse_one", parse)  # noqa: B010


def _remembered(parse: Callable[..., exp.Expr], sql: str, /, *args: Any, **options: Any) -> exp.Expr:
    """What `parse` gives; `options` are the same whenever sqlglot asks for one of the types."""
    if sql not in _ASKED_FOR or args or options.get("into") is not exp.DataType or options.get("read") is not None:
        return parse(sql, *args, **options)
    if sql not in _known:
        _known[sql] = parse(sql, **options)
    return _known[sql].copy()
