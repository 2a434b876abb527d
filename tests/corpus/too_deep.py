"""SQL just beyond the limits of `sqlstream/compiler/sql/grammar.py`, for two test suites."""

from __future__ import annotations

from sqlstream.compiler.sql.grammar import DEEPEST_BRACKETS, DEEPEST_CALLS, DEEPEST_CASES, LONGEST_CHAIN

_CALLS, _BRACKETS, _CASES = DEEPEST_CALLS + 1, DEEPEST_BRACKETS + 1, DEEPEST_CASES + 1

TOO_DEEP = {
    "brackets": f"select {'(' * _BRACKETS}1{')' * _BRACKETS}",
    "calls": f"select {'abs(' * _CALLS}1{')' * _CALLS}",
    "coalesce": f"select {'coalesce(1, ' * _CALLS}1{')' * _CALLS}",
    "case": f"select {'case when true then ' * _CASES}1{' end' * _CASES}",
    "else": f"select {'case when id > 1 then 1 else ' * _CASES}1{' end' * _CASES} from range(1)",
    "plus": f"select {' + '.join(['id'] * (LONGEST_CHAIN + 2))} from range(1)",
    "concatenation": f"select {' || '.join(['id'] * (LONGEST_CHAIN + 2))} from range(1)",
}
"""SQL by the kind of nesting."""
