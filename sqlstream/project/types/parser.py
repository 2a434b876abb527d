"""Parses Spark's DDL of types and schemas, as in `SqlBaseParser.g4` of Spark 4.3 (`dataType`, `colTypeList`).

DDL that Spark certainly refuses is an error with its location. DDL that Spark may accept and this parser does not know
becomes `Unknown`, and Spark decides.
"""

from __future__ import annotations

from sqlstream.project.types.cursor import OTHER_CHARACTERS, TokenCursor, TypeSyntaxError, UnsureError
from sqlstream.project.types.names import suggest_type
from sqlstream.project.types.tokens import TypeToken
from sqlstream.project.types.types import (
    ALIASES,
    PLAIN_NAMES,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Primitive,
    Struct,
    Unknown,
)
from sqlstream.project.wording import quoted

DEEPEST_NESTING = 100
"""The greatest depth of nested types. Python's stack allows some more."""

MOST_DIGITS = 38
"""The greatest precision of a decimal (`DecimalType.MAX_PRECISION`)."""

GREATEST_NUMBER = 2**31 - 1
"""The greatest length or number of digits (Java's `Integer.MAX_VALUE`)."""

_SIZED = frozenset({"CHAR", "CHARACTER", "VARCHAR"})
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_UNITS = (("YEAR", "MONTH"), ("DAY", "HOUR", "MINUTE", "SECOND"))
_CLAUSES_OF_TABLES = frozenset(
    {
        "DEFAULT",
        "GENERATED",
        "CHECK",
        "CONSTRAINT",
        "PRIMARY",
        "REFERENCES",
        "UNIQUE",
        "COLLATE",
        "NULL",
        "NOT",
        "COMMENT",
    }
)
"""Clauses that can follow a column in CREATE TABLE, or that come too late. In a schema only `not null` and then
`comment` can follow a type."""


def parse_type(ddl: str) -> DataType:
    """Returns one type, such as `map<string, array<int>>`. Raises: TypeSyntaxError."""
    try:
        parser = _Parser(ddl)
        found = parser.data_type()
        parser.end()
    except UnsureError:
        return Unknown(ddl)
    return found


def parse_schema(ddl: str) -> Struct | Unknown:
    """Returns the columns of a schema, such as `id bigint, ts timestamp not null`. Raises: TypeSyntaxError."""
    try:
        parser = _Parser(ddl)
        fields = parser.fields(in_struct=False)
        parser.end()
    except UnsureError:
        return Unknown(ddl)
    return Struct(fields)


class _Parser(TokenCursor):
    """Reads the tokens once by recursive descent. Spark's keywords can be names, so only the position decides."""

    def __init__(self, ddl: str) -> None:
        super().__init__(ddl)
        self._depth = 0

    def end(self) -> None:
        """Checks that nothing is left. Raises: TypeSyntaxError."""
        if self.next.kind == "end":
            return
        if self.next.is_name and self.next.key not in ("NOT", "COMMENT"):
            raise self.unexpected("a comma or the end", "add a comma between two columns: `id bigint, ts timestamp`")
        raise self.unexpected("the end", "remove it; each < needs one >, and each ( one )")

    def fields(self, *, in_struct: bool) -> tuple[Field, ...]:
        """Reads columns, or a struct's fields, separated by commas."""
        found = [self._field(in_struct=in_struct)]
        while self.take(","):
            found.append(self._field(in_struct=in_struct))
        return tuple(found)

    def _field(self, *, in_struct: bool) -> Field:
        name = self.identifier(
            "a column's name", "give each column a name and a type; put other names in `back-quotes`"
        )
        if self.next.key == "-":
            raise self.unexpected("a type", OTHER_CHARACTERS)
        if self.take(":") and not in_struct:
            self.index -= 1
            raise self.unexpected(
                "a type",
                f"use {name.text} and its type with a space between them: only struct fields can have a colon",
            )
        type_ = self.data_type()
        nullable = not self.take("NOT", "NULL")
        comment = self._comment() if self.take("COMMENT") else ""
        if self.next.is_name and self.next.key in _CLAUSES_OF_TABLES:
            what = f"remove {self.next.text.lower()}"
            fix = f"{what}: in a schema only `not null`, and then `comment '...'`, can follow a type"
            raise self.unexpected("a comma or the end", fix)
        return Field(name.name, type_, nullable, comment)

    def _comment(self) -> str:
        if self.next.kind != "string":
            raise self.unexpected("a quoted text", "for example, use comment 'in euros'")
        text = ""
        while self.next.kind == "string":
            text += self.step().value
        return text

    def data_type(self) -> DataType:
        """Reads one type."""
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            raise UnsureError
        if not self.next.is_name:
            raise self.unexpected("a type", "for example, use `id bigint`")
        token = self.step()
        found = self._composite(token) or self._with_parameters(token) or self._plain(token)
        self._depth -= 1
        return found

    def _composite(self, token: TypeToken) -> DataType | None:
        if token.key == "ARRAY":
            self.expect("<", "array<string>")
            element = self.data_type()
            self.expect(">", "array<string>")
            return Array(element)
        if token.key == "MAP":
            self.expect("<", "map<string, int>")
            key = self.data_type()
            self.expect(",", "map<string, int>")
            value = self.data_type()
            self.expect(">", "map<string, int>")
            return Map(key, value)
        if token.key == "STRUCT":
            self.expect("<", "struct<a: int, b: string>")
            fields = () if self.next.key == ">" else self.fields(in_struct=True)
            self.expect(">", "struct<a: int, b: string>")
            return Struct(fields)
        return None

    def _with_parameters(self, token: TypeToken) -> DataType | None:
        if token.key in _DECIMALS:
            return self._decimal(token)
        if token.key in _SIZED:
            name = ALIASES.get(token.text.lower(), token.text.lower())
            if self.next.key != "(":
                raise _without_length(token, name)
            return Primitive(name, tuple(map(str, self._numbers(f"{name}(20)", 1))), self._collation())
        if token.key == "TIME":
            digits = self._numbers("time(6)", 1) if self.next.key == "(" else [6]
            self.take("WITHOUT", "TIME", "ZONE")
            return Primitive("time", (str(digits[0]),))
        if token.key in ("GEOMETRY", "GEOGRAPHY"):
            return self._geo(token)
        return self._interval() if token.key == "INTERVAL" else None

    def _decimal(self, token: TypeToken) -> Decimal:
        numbers = self._numbers("decimal(10,2)", 2) if self.next.key == "(" else []
        found = Decimal(*numbers)
        if found.precision > MOST_DIGITS or found.scale > found.precision:
            raise TypeSyntaxError(
                token.offset,
                f"`{found}` has too many digits",
                f"a decimal has at most {MOST_DIGITS} digits, before and after the point together",
                f"for example, use decimal({min(max(found.precision, found.scale), MOST_DIGITS)},2)",
            )
        return found

    def _numbers(self, example: str, most: int) -> list[int]:
        """Reads up to `most` numbers in parentheses."""
        self.expect("(", example)
        found: list[int] = []
        while not found or (len(found) < most and self.take(",")):
            found.append(self._number(example))
        self.expect(")", example)
        return found

    def _number(self, example: str) -> int:
        if self.next.kind != "number" or not self.next.text.isdecimal():
            raise self.unexpected("a number", f"for example, use {example}")
        digits = self.next.text.lstrip("0") or "0"
        if len(digits) > len(str(GREATEST_NUMBER)) or int(digits) > GREATEST_NUMBER:
            raise self.unexpected(f"a number up to {GREATEST_NUMBER}", f"for example, use {example}")
        self.index += 1
        return int(digits)

    def _geo(self, token: TypeToken) -> Primitive:
        if not self.take("(") or not (self.next.text == "4326" or self.next.key == "ANY"):
            raise UnsureError
        parameter = self.step().text
        self.expect(")", f"{token.text}(4326)")
        return Primitive(token.text.lower(), (parameter,))

    def _interval(self) -> Primitive:
        family = next((units for units in _UNITS if self.next.key in units), None)
        if family is None:
            return Primitive("interval")
        first = self.step().key
        if not self.take("TO"):
            return Primitive(f"interval {first.lower()}")
        if self.next.key not in family[family.index(first) + 1 :]:
            fix = "for example, use interval day to second, or interval year to month"
            raise self.unexpected("a smaller unit", fix)
        return Primitive(f"interval {first.lower()} to {self.step().text.lower()}")

    def _collation(self) -> str | None:
        if not self.take("COLLATE"):
            return None
        names: list[str] = []
        while not names or self.take("."):
            token = self.identifier("the name of a collation", "for example, use collate utf8_lcase")
            names.append(token.name)
        if len(names) > 1 and [name.upper() for name in names[:-1]] != ["SYSTEM", "BUILTIN"]:
            raise UnsureError
        return names[-1]

    def _plain(self, token: TypeToken) -> DataType:
        name = ALIASES.get(token.text.lower(), token.text.lower())
        if name not in PLAIN_NAMES:
            raise _unknown_type(token)
        if name == "timestamp" and self.take("WITHOUT", "TIME", "ZONE"):
            return Primitive("timestamp_ntz")
        if name == "timestamp" and not self.take("WITH", "LOCAL", "TIME", "ZONE") and self.next.key == "WITH":
            raise UnsureError
        if self.next.key == "(":
            if name.startswith("timestamp"):
                raise UnsureError
            raise self.unexpected("no length", f"use `{token.text}` alone" + _SIZES.get(name, ""))
        return Primitive(name, collation=self._collation() if name == "string" else None)


_SIZES = {"string": ", or varchar(20)", "float": ", or decimal(10,2)", "double": ", or decimal(10,2)"}


def _without_length(token: TypeToken, name: str) -> TypeSyntaxError:
    why = f"Spark's {name}(n) holds {'exactly' if name == 'char' else 'at most'} n characters"
    fix = f"use `string`, or for example {name}(100)"
    return TypeSyntaxError(token.offset, f"{quoted(token.name)} needs a length", why, fix)


def _unknown_type(token: TypeToken) -> TypeSyntaxError:
    what = f"{quoted(token.name)} is not a Spark type"
    why = "Spark SQL does not have all of the common type names"
    return TypeSyntaxError(token.offset, what, why, suggest_type(token.name))
