"""Parses Spark's DDL of types and schemas, as in `SqlBaseParser.g4` of Spark 4.3 (`dataType`, `colTypeList`).

DDL that Spark certainly refuses is an error with its location. DDL that Spark may accept and this parser does not know
becomes `Unknown`, and Spark decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlstream.project.types.data_types import (
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
from sqlstream.project.wording import did_you_mean, quoted

_WHY = "Spark DDL lists columns as names with types, separated by commas"
OTHER_CHARACTERS = "put names with characters other than the letters a to z, digits and _ in `back-quotes`"
"""The fix for a name that needs quotes."""

DEEPEST_NESTING = 100
"""The greatest depth of nested types. Python's stack allows some more."""

MOST_DIGITS = 38
"""The greatest precision of a decimal (`DecimalType.MAX_PRECISION`)."""

GREATEST_NUMBER = 2**31 - 1
"""The greatest length or number of digits (Java's `Integer.MAX_VALUE`)."""


class TypeSyntaxError(ValueError):
    """The text is not a type or schema of Spark. `offset` is the offset of the first wrong character."""

    def __init__(self, offset: int, message: str, why: str, fix: str) -> None:
        super().__init__(message)
        self.offset = offset
        self.message = message
        self.why = why
        self.fix = fix


class UnsureError(Exception):
    """Only Spark can decide about the text."""


class TokenCursor:
    """The tokens of a text, and the index of the next one."""

    def __init__(self, ddl: str) -> None:
        # Spark reads such comments, which can be nested, and this parser does not.
        if "/*" in ddl:
            raise UnsureError
        self._tokens, self._nothing = type_tokens(ddl)
        if any(token.may_be_keyword for token in self._tokens):
            raise UnsureError
        self.index = 0

    @property
    def next(self) -> TypeToken:
        """The next token; at the end, one without text."""
        return self._tokens[self.index] if self.index < len(self._tokens) else self._nothing

    def take(self, *keys: str) -> bool:
        """Skips `keys` if all of them come next, and returns whether it did."""
        following = self._tokens[self.index : self.index + len(keys)]
        if tuple(token.key for token in following) != keys:
            return False
        self.index += len(keys)
        return True

    def step(self) -> TypeToken:
        """Skips the next token, and returns it."""
        token = self.next
        self.index += 1
        return token

    def expect(self, key: str, example: str) -> None:
        """Skips `key`. Raises: TypeSyntaxError if something else comes next."""
        if not self.take(key):
            raise self.unexpected(f"`{key}`", f"for example, use {example}")

    def unexpected(self, expected: str, fix: str) -> TypeSyntaxError:
        """Returns the error for the next token."""
        found = quoted(self.next.text) if self.next.text else "the end"
        return TypeSyntaxError(self.next.offset, f"found {found}, expected {expected}", _WHY, fix)

    def identifier(self, expected: str, fix: str) -> TypeToken:
        """Skips a name, and returns it. Raises: TypeSyntaxError, UnsureError."""
        if self.next.text.startswith('"'):
            raise UnsureError  # a setting of Spark makes it a name
        if not self.next.is_name:
            raise self.unexpected(expected, fix)
        if self.next.needs_quotes:
            raise self.unexpected(expected, OTHER_CHARACTERS)
        return self.step()


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


def known_type(ddl: str) -> DataType:
    """Returns one type, `Unknown` for DDL that is none."""
    try:
        return parse_type(ddl)
    except TypeSyntaxError:
        return Unknown(ddl)


def parse_schema(ddl: str) -> Struct | Unknown:
    """Returns the columns of a schema, such as `id bigint, ts timestamp not null`. Raises: TypeSyntaxError."""
    try:
        parser = _Parser(ddl)
        fields = parser.fields(in_struct=False)
        parser.end()
    except UnsureError:
        return Unknown(ddl)
    return Struct(fields)


def known_schema(ddl: str) -> tuple[Field, ...]:
    """Returns the columns of a schema, none for text that is no DDL of a schema."""
    try:
        schema = parse_schema(ddl)
    except TypeSyntaxError:
        return ()
    return schema.fields if isinstance(schema, Struct) else ()


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
            self.index -= 1  # the error is at the colon
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


_TOKENS = re.compile(
    r"""
    (?P<space>[ \t\n\r\f\v\xa0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+|--(?:\\\n|[^\r\n])*)
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|[rR]'[^']*'|[rR]"[^"]*")
    | (?P<number>[0-9]+(?:[lLsSyY]|(?:[eE][0-9]+)?(?:[fFdD]|[bB][dD])?)(?!\w))
    | (?P<word>\w+)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""White space as in Spark's lexer, which is less than Python's. Digits are a number, also with the letters that give a
literal its type; any other word can begin with a digit.
"""


@dataclass(frozen=True)
class TypeToken:
    """A word, a number, a name in back-quotes, a text in quotes, or one other character; `end` after the last one."""

    kind: str
    text: str
    offset: int

    @property
    def key(self) -> str:
        """The text for comparisons: a word in upper case, or a symbol; empty for other kinds."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    @property
    def is_name(self) -> bool:
        """Whether this can be an identifier: in types, every word can."""
        return self.kind in ("word", "quoted")

    @property
    def needs_quotes(self) -> bool:
        """Whether Spark refuses this word outside of back-quotes because of its letters."""
        return self.kind == "word" and not self.text.isascii()

    @property
    def may_be_keyword(self) -> bool:
        """Whether this word has letters whose capitals are ASCII. Spark treats them as the letters of keywords."""
        return self.needs_quotes and self.text.replace("ſ", "s").replace("ı", "i").isascii()

    @property
    def name(self) -> str:
        """The identifier without its back-quotes."""
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else self.text

    @property
    def value(self) -> str:
        """The text without its quotes. Spark interprets back-slashes in it."""
        if self.text[:1] in "rR":
            return self.text[2:-1]
        return self.text[1:-1].replace(self.text[0] * 2, self.text[0])


def type_tokens(ddl: str) -> tuple[list[TypeToken], TypeToken]:
    """Returns the tokens without comments, and the token for the end of the text."""
    found = [(match.lastgroup or "", match.group(), match.start()) for match in _TOKENS.finditer(ddl)]
    tokens = [TypeToken(*piece) for piece in found if piece[0] != "space"]
    return tokens, TypeToken("end", "", len(ddl.rstrip()))


FOREIGN_NAMES = {
    **dict.fromkeys(("bool", "bit"), "boolean"),
    **dict.fromkeys(("str", "text", "uuid", "enum", "clob"), "string"),
    **dict.fromkeys(("bytes", "bytea", "blob", "varbinary"), "binary"),
    **dict.fromkeys(("datetime", "timestamptz", "timestamp_tz"), "timestamp"),
    **dict.fromkeys(("int64", "serial", "bigserial"), "bigint"),
    **dict.fromkeys(("json", "jsonb"), "variant"),
    **dict.fromkeys(("dict", "hash"), "map"),
    **dict.fromkeys(("object", "record", "row"), "struct"),
    **dict.fromkeys(("nvarchar", "varchar2"), "varchar"),
    "int32": "int",
    "int16": "smallint",
    "float64": "double",
    "float32": "float",
    "list": "array",
    "null": "void",
}
"""Names of types in other systems, with Spark's types."""

_FRACTIONS = frozenset({"number", "bignumeric", "money", "smallmoney"})
"""Names of types with decimal places in other systems. Spark's `decimal` without parameters has none."""

_KNOWN = (*PLAIN_NAMES, *ALIASES, "decimal", "numeric", "char", "varchar", "time", "array", "map", "struct")


def suggest_type(name: str) -> str:
    """Returns the fix for an unknown type."""
    if name.lower() in _FRACTIONS:
        return "did you mean `double` or `decimal(10,2)`?"
    type_name = FOREIGN_NAMES.get(name.lower())
    return f"did you mean `{type_name}`?" if type_name else did_you_mean(name, _KNOWN)
