"""Reads one expression of a query as a term over the columns of sources. What it does not know completely, it does not
read.

sqlglot's tree does not keep all of the text, so the names of functions and their arguments are checked against the
tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from sqlstream.compiler.comparison.terms import CAST, FILTER, NULL, Kind, NotComparableError, Term, literal, operation
from sqlstream.compiler.flow.expressions.column import WINDOWS
from sqlstream.compiler.flow.functions import AGGREGATES, FUNCTIONS, GENERATORS, RANDOM, WINDOW_FUNCTIONS
from sqlstream.compiler.flow.text import NOWHERE, Text, name_parts
from sqlstream.compiler.sql.intervals import length_text, read_span
from sqlstream.compiler.sql.tokens import Token

Resolve = Callable[[tuple[str, ...]], Term]
"""Returns the term of a column by the parts of its name. Raises: NotComparableError if it is unknown."""

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.DPipe: "||",
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "and",
    exp.Or: "or",
    exp.Like: "like",
    exp.RegexpLike: "rlike",
}
_FLAGS: dict[type[exp.Expr], tuple[str, ...]] = {exp.DPipe: ("safe",), exp.Div: ("safe", "typed")}
"""What sqlglot notes about all operators of Spark's dialect."""


_WITHOUT_TERM = frozenset((*GENERATORS, *WINDOW_FUNCTIONS, *RANDOM, "window_time"))
_CASTS = frozenset(
    ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp", "binary", "string")
)
"""Functions that cast to the type of their name."""

_SPECIAL = frozenset(
    {
        *("DISTINCT", "ALL", "FROM", "FOR", "IGNORE", "RESPECT", "ORDER", "USING", "AS", "WITHIN", "OVER", "LIMIT"),
        *("->", "=>"),
    }
)
"""Words that give an argument another meaning."""

_WITHOUT_BRACKETS = frozenset(("current_date", "current_timestamp", "localtimestamp"))
_OF_TWO = (exp.ArgMax, exp.ArgMin)
"""Functions of two arguments, of which sqlglot keeps no place."""


class ExpressionReader:
    """Reads expressions of one SELECT. `calls` are the aggregate functions that it has read, `windows` the time windows
    and `columns` the columns, in the order of the text, which decides in which order Spark stores them.
    """

    def __init__(self, text: Text, resolve: Resolve, owner: int | None = None) -> None:
        """`owner` is the aggregation to which aggregate functions belong; None where they are not allowed."""
        self._text, self._resolve, self._owner = text, resolve, owner
        self._in_call = False
        self.calls: list[Term] = []
        self.windows: list[Term] = []
        self.columns: list[Term] = []

    def read(self, node: exp.Expr) -> Term:
        """Returns the term of an expression. Raises: NotComparableError."""
        if isinstance(node, exp.Paren):
            return self.read(node.this)
        parts = name_parts(node)
        if parts:
            self.columns.append(self._resolve(parts))
            return self.columns[-1]
        if type(node) in _OPERATORS:
            _check_args(node, "this", "expression")
            return operation(_OPERATORS[type(node)], self.read(node.this), self.read(node.expression))
        if isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.Neg | exp.Interval):
            return self._constant(node)
        return self._special(node) or self._function(node)

    def _constant(self, node: exp.Expr) -> Term:
        if isinstance(node, exp.Literal):
            text = str(node.this)
            return literal("'" + text.replace("'", "''") + "'" if node.is_string else text.lower())
        if isinstance(node, exp.Neg):
            inner = self.read(node.this)
            is_number = isinstance(node.this, exp.Literal) and not node.this.is_string
            return literal(f"-{inner.text}") if is_number else operation("negative", inner)
        if isinstance(node, exp.Interval):
            unit, value = node.args.get("unit"), node.this
            if not isinstance(unit, exp.Var) or not isinstance(value, exp.Literal):
                raise _unknown(self._text, node)
            return literal(f"interval '{value.this}' {str(unit.this).lower().removesuffix('s')}")
        return NULL if isinstance(node, exp.Null) else literal(str(node.this).lower())

    def _special(self, node: exp.Expr) -> Term | None:
        """Returns the term of an expression with its own syntax, None for other ones."""
        if isinstance(node, exp.NEQ):
            return operation("not", operation("=", self.read(node.this), self.read(node.expression)))
        if isinstance(node, exp.Not):
            return operation("not", self.read(node.this))
        if isinstance(node, exp.Is):
            return operation("is", self.read(node.this), self.read(node.expression))
        if isinstance(node, exp.Between):
            _check_args(node, "this", "low", "high")
            value, low, high = self.read(node.this), self.read(node.args["low"]), self.read(node.args["high"])
            return operation("and", operation(">=", value, low), operation("<=", value, high))
        if isinstance(node, exp.In):
            _check_args(node, "this", "expressions")
            listed = dict.fromkeys(map(self.read, node.expressions))
            return operation("in", self.read(node.this), *listed)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Filter):
            return self._filtered(node)
        return None

    def _case(self, node: exp.Case) -> Term:
        parts = [part for each in node.args["ifs"] for part in (each.this, each.args["true"])]
        value, default = node.args.get("this"), node.args.get("default")
        head = f"case {'of ' if value else ''}{len(parts) // 2}{' else' if default else ''}"
        return operation(head, *(self.read(part) for part in (value, *parts, default) if part is not None))

    def _cast(self, node: exp.Cast) -> Term:
        _check_args(node, "this", "to", "safe", "_type")
        start = node.meta_get("start")
        called = self._text.function(node) if start is not None else "cast"
        if called not in _CASTS | {"cast", "try_cast"}:
            raise _unknown(self._text, node)
        kind = self._text.written(node.args["to"]).lower()
        is_try = node.args.get("safe") or called == "try_cast"
        return operation(f"try_cast as {kind}" if is_try else CAST + kind, self.read(node.this))

    def _filtered(self, node: exp.Filter) -> Term:
        call = self.read(node.this)
        if call.kind is not Kind.CALL or not isinstance(node.expression, exp.Where):
            raise _unknown(self._text, node)
        self._in_call = True
        condition = self.read(node.expression.this)
        self._in_call = False
        self.calls.pop()  # the call without its FILTER
        return self._call(Term(FILTER, (call.parts[0], condition)))

    def _call(self, term: Term) -> Term:
        if self._owner is None:
            raise NotComparableError(f"`{term.text}` is not in a SELECT with groups")
        self.calls.append(Term("", (term,), Kind.CALL, self._owner))
        return self.calls[-1]

    def _function(self, node: exp.Expr) -> Term:
        name = self._text.function(node) if isinstance(node, exp.Func) else ""
        if (name not in FUNCTIONS and name not in WINDOWS) or name in _WITHOUT_TERM:
            raise _unknown(self._text, node)
        is_call = name in AGGREGATES
        if is_call and self._in_call:
            raise _unknown(self._text, node)
        self._in_call = self._in_call or is_call
        arguments = self._arguments(name, node)
        self._in_call = self._in_call and not is_call
        if name in WINDOWS:
            arguments = [arguments[0], *_lengths(name, arguments[1:])]
        term = Term(name, tuple(arguments))
        if name in WINDOWS:
            self.windows.append(term)
        return self._call(term) if is_call else term

    def _arguments(self, name: str, node: exp.Expr) -> list[Term]:
        nodes = list(_children(node))
        if isinstance(node, _OF_TWO):
            _check_args(node, "this", "expression")
            return [self.read(each) for each in nodes]
        if not nodes and name in _WITHOUT_BRACKETS:
            return []
        spans = self._spans(node)
        if name == "count" and len(nodes) == 1 and isinstance(nodes[0], exp.Star) and len(spans) == 1:
            return [literal("1")]  # as in Spark's plans
        # sqlglot adds, drops and reorders arguments of some functions
        if len(nodes) != len(spans) or not all(map(self._is_at, nodes, spans)):
            raise _unknown(self._text, node)
        return [self.read(each) for each in nodes]

    def _spans(self, node: exp.Expr) -> list[Sequence[Token]]:
        """Returns the tokens of each argument of a call."""
        tokens = self._text.tokens
        start = self._text.token_at(node.meta_get("start", NOWHERE))
        end = self._text.after.get(-1 if start is None else start + 1)
        if start is None or end is None:
            raise _unknown(self._text, node)
        spans: list[Sequence[Token]] = []
        first = index = start + 2
        while index < end:
            if tokens[index].key in _SPECIAL:
                raise _unknown(self._text, node)
            if tokens[index].key == "," or index == end - 1:
                spans += [tokens[first:index]] if index > first else []
                first = index + 1
            index = self._text.after.get(index, index + 1)
        return spans

    def _is_at(self, node: exp.Expr, span: Sequence[Token]) -> bool:
        """Returns whether an argument is that of the tokens."""
        start = self._text.start(node)
        if start != NOWHERE:
            return span[0].start <= start <= span[-1].end
        number = node.this if isinstance(node, exp.Neg) else node
        if isinstance(number, exp.Literal):
            text = span[-1].text[1:-1] if number.is_string else span[-1].text
            return len(span) == (1 if number is node else 2) and text == str(number.this)
        return isinstance(node, exp.Null | exp.Boolean) and len(span) == 1


def _children(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the arguments of a call. Raises: NotComparableError if it has other ones than expressions."""
    for name, value in node.args.items():
        if isinstance(node, exp.Anonymous) and name == "this":
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                yield each
            elif each is not None and not isinstance(each, bool):
                raise NotComparableError(f"the argument {name} of a function")


def _lengths(name: str, terms: Sequence[Term]) -> list[Term]:
    """Returns the lengths of a time window, without those that are as if they were not given."""
    found = [_length(term) for term in terms]
    if name == "window" and len(found) == 3 and found[2].head == _length(literal("'0 seconds'")).head:
        found = found[:2]
    return found[:1] if name == "window" and len(found) == 2 and found[0] == found[1] else found


def _length(term: Term) -> Term:
    span = read_span(term.head[1:-1]) if term.kind is Kind.LITERAL and term.head.startswith("'") else None
    if span is None or span.months:
        raise NotComparableError(f"`{term.text}` is not the length of a window")
    return literal(length_text(span.microseconds))


def _check_args(node: exp.Expr, *known: str) -> None:
    """Raises: NotComparableError if an expression has other parts than the known ones."""
    for name, value in node.args.items():
        if value and name not in known and name not in _FLAGS.get(type(node), ()):
            raise NotComparableError(f"{type(node).__name__} with {name}")


def _unknown(text: Text, node: exp.Expr) -> NotComparableError:
    return NotComparableError(f"`{text.written(node)}`")
