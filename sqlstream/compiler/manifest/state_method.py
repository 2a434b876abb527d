"""Compares two manifests for dbt's `state:` method (StateSelectorMethod of dbt-core 1.11).

The comparison uses unrendered files, so manifests from different environments are comparable. It ignores formatting.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jinja2 import Environment, TemplateSyntaxError
from jinja2.lexer import Lexer

from sqlstream.compiler.graph import EXPOSURE, MODEL, SEED, SOURCE, closure_of, kind_of
from sqlstream.compiler.sql.tokens import SqlTokenError, Token, TokenKind, find_comments, flatten_hints, tokenize
from sqlstream.project.configuration.validate import is_template
from sqlstream.project.types.ddl import known_type

Manifest = Mapping[str, Any]
"""The result of `build_manifest`, new or read from a file."""

Entry = Mapping[str, Any]
"""One node or source of a manifest."""

NOT_COMPARED = ("tags",)
"""Configuration keys whose changes dbt ignores, except those of exposures."""

_COMPARED: Mapping[str, tuple[str, ...]] = {
    MODEL: ("path", "data_tests"),
    SEED: ("path",),
    EXPOSURE: ("fqn", "type", "owner", "maturity", "url", "description", "label", "depends_on"),
}
"""Keys of entries whose change modifies a node, besides its text and configuration. Those of exposures are dbt's."""

KEYWORDS = frozenset({
    "ALL", "AND", "AS", "BY", "CASE", "CROSS", "DISTINCT", "ELSE", "END", "EXCEPT", "FROM", "FULL", "GROUP", "HAVING",
    "IN", "INNER", "INTERSECT", "IS", "JOIN", "LATERAL", "LEFT", "NATURAL", "NOT", "NULL", "ON", "OR", "ORDER",
    "OUTER", "OVER", "PARTITION", "RIGHT", "SELECT", "THEN", "UNION", "USING", "WHEN", "WHERE", "WITH",
})  # fmt: skip
"""Words compared without their letter case, because they are names only after AS, or before or after a dot."""

NEUTRAL = frozenset("(),;[]")
"""Symbols that never join with the output of an adjacent `{{ }}`."""

OPENING, CLOSING = frozenset("([{"), frozenset(")]}")

GLUE = " "
"""The word between SQL and adjacent Jinja without white space: `{{ prefix }}_name` is one name."""


def find_states(old: Manifest, new: Manifest) -> Mapping[str, frozenset[str]]:
    """Returns the words of `state:` that match each model, seed, source and exposure of `new`, by unique id.

    New nodes are also modified. A model is modified if its template, configuration, data tests or path changes, the
    definition of its sink, a macro that it uses, the Python module of a function that its SQL calls, or a variable of
    project.yml that any of these read. A seed is modified if its text, configuration or path changes, a source if its
    reading changes, an exposure if anything of it but its own `tags` and `meta` changes. Other tags and descriptions do
    not count.
    """
    # As if it had been read from a file, like the old one: tuples become lists, and dates texts.
    comparison = _Comparison(old, json.loads(json.dumps(new, default=str)))
    return {node: frozenset(comparison.states(node)) for node in comparison.new_entries}


class _Comparison:
    """The differences between two manifests. Costly ones are computed on first use."""

    def __init__(self, old: Manifest, new: Manifest) -> None:
        self._old, self._new = old, new
        self._old_entries: Mapping[str, Entry] = {**old["nodes"], **old["sources"], **old.get("exposures", {})}
        self.new_entries: Mapping[str, Entry] = {**new["nodes"], **new["sources"], **new["exposures"]}

    def states(self, node: str) -> Iterator[str]:
        old, new = self._old_entries.get(node), self.new_entries[node]
        template = self._template(node)
        parts = {
            "modified.body": kind_of(node) in (MODEL, SEED) and (old is None or self._body_changed(old, new, template)),
            "modified.macros": template is not None and self._code_changed(template),
            "modified.configs": old is None or self._configs_changed(old, new, template),
            "modified.contract": kind_of(node) == MODEL and (old is None or _contract(old) != _contract(new)),
        }
        yield "new" if old is None else "old"
        yield from (part for part, changed in parts.items() if changed)
        keys = _COMPARED.get(kind_of(node), ())
        differs = old is not None and any(_value(old, key) != _value(new, key) for key in keys)
        yield "modified" if differs or any(parts.values()) else "unmodified"

    def _template(self, node: str) -> TemplateWords | None:
        """The words of a model's template; None for nodes without a template and for models without any change."""
        if kind_of(node) != MODEL or str(self.new_entries[node].get("path")).endswith(".py"):
            return None
        old, new = self._old_entries.get(node), self.new_entries[node]
        same = old is not None and all(old.get(key) == new.get(key) for key in ("raw_code", "unrendered_config"))
        needed = not same or self._changed_macros or self._changed_variables or self._changed_functions
        return read_template(str(new.get("raw_code"))) if needed else None

    def _body_changed(self, old: Entry, new: Entry, template: TemplateWords | None) -> bool:
        if template is None:
            return bool(old.get("checksum") != new.get("checksum"))
        before = read_template(str(old.get("raw_code")))
        return before.words != template.words or self._reads_changed(template.variables)

    def _code_changed(self, template: TemplateWords) -> bool:
        """Whether a macro that the template uses has changed, or a function that it or one of its macros calls."""
        macros = closure_of(self._macro_calls, self._macro_calls.keys() & template.names)
        parts = [template, *(part for name in macros for part in self._macros.get(name, ()))]
        called = {word.lower() for part in parts for word in part.words} if self._changed_functions else set()
        return not self._changed_macros.isdisjoint(macros) or not self._changed_functions.isdisjoint(called)

    def _configs_changed(self, old: Entry, new: Entry, template: TemplateWords | None) -> bool:
        set_before = read_template(str(old.get("raw_code"))).config if template is not None else {}
        set_now = template.config if template is not None else {}
        before, now = _configured(old, set_before), _configured(new, set_now)
        return before != now or self._text_reads_changed(now) or self._sink_changed(new)

    def _sink_changed(self, new: Entry) -> bool:
        name = new.get("config", {}).get("sink")
        before, now = (
            [entry.get("unrendered_config") for entry in manifest["sinks"].values() if entry.get("name") == name]
            for manifest in (self._old, self._new)
        )
        return name is not None and (before != now or self._text_reads_changed(now))

    @cached_property
    def _changed_variables(self) -> frozenset[str]:
        """The variables of project.yml that have changed, directly or through variables that they read."""
        new = self._new["vars"]
        changed = _differing(self._old["vars"], new)
        while more := {name for name in new if name not in changed and _reads(new[name], changed)}:
            changed |= more
        return frozenset(changed)

    def _reads_changed(self, variables: frozenset[str] | None) -> bool:
        changed = self._changed_variables
        return bool(changed) and (variables is None or not changed.isdisjoint(variables))

    def _text_reads_changed(self, value: object) -> bool:
        return bool(self._changed_variables) and _reads(value, self._changed_variables)

    @cached_property
    def _changed_functions(self) -> frozenset[str]:
        """The project's Python functions whose module has changed, in lower case."""
        now = self._new["functions"]
        before = self._old.get("functions", now)  # earlier versions did not store them
        return frozenset(name.lower() for name in _differing(before, now))

    @cached_property
    def _changed_macros(self) -> frozenset[str]:
        """The macros that are new, deleted or modified, or that read a changed variable."""
        if self._old["macro_files"] == self._new["macro_files"] and not self._changed_variables:
            return frozenset()
        macros = (read_macros(self._old["macro_files"].values()), self._macros)
        before, now = ({name: [part.words for part in parts] for name, parts in each.items()} for each in macros)
        reading = {name for name, parts in macros[1].items() if any(self._reads_changed(p.variables) for p in parts)}
        return frozenset(_differing(before, now) | reading)

    @cached_property
    def _macros(self) -> Mapping[str, tuple[TemplateWords, ...]]:
        return read_macros(self._new["macro_files"].values())

    @cached_property
    def _macro_calls(self) -> Mapping[str, list[str]]:
        """The macros that each macro uses, including deleted macros."""
        known = {**dict.fromkeys(self._changed_macros, ()), **self._macros}
        return {name: [used for part in parts for used in part.names if used in known] for name, parts in known.items()}


def _contract(entry: Entry) -> object:
    """Returns what the enforced contract of a model demands, None without one. Descriptions do not count."""
    if not entry.get("contract", {}).get("enforced"):
        return None
    columns = [(name.lower(), str(known_type(each.get("data_type") or ""))) for name, each in entry["columns"].items()]
    return columns, entry.get("constraints", [])


def _value(entry: Entry, key: str) -> object:
    """Returns the value of a key; for what an exposure depends on, without order; of data tests what they do."""
    if key == "data_tests":
        return [[test[part] for part in ("name", "condition", "on_violation")] for test in entry.get(key) or ()]
    return sorted(entry["depends_on"]["nodes"]) if key == "depends_on" else entry.get(key)


def _differing(before: Mapping[str, object], now: Mapping[str, object]) -> set[str]:
    """Returns the keys that only one mapping has, or whose values differ."""
    return {key for key in {**before, **now} if key not in before or key not in now or before[key] != now[key]}


def _configured(entry: Entry, called: Mapping[str, tuple[str, ...]]) -> Mapping[str, object]:
    """Returns the unrendered values of YAML and config(), which overrides YAML. A schema becomes its words."""
    config: dict[str, object] = {**entry.get("unrendered_config", {}), **called}
    if entry.get("resource_type") == SOURCE and isinstance(config.get("schema"), str):
        config["schema"] = read_template(str(config["schema"])).words
    compares_tags = entry.get("resource_type") == EXPOSURE
    return {key: value for key, value in config.items() if compares_tags or key not in NOT_COMPARED}


def _reads(value: object, variables: Iterable[str]) -> bool:
    if isinstance(value, Mapping):
        return any(_reads(item, variables) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_reads(item, variables) for item in value)
    if not is_template(value):
        return False
    read = read_template(str(value)).variables
    return read is None or not read.isdisjoint(variables)


_LEXER = Lexer(Environment(keep_trailing_newline=True))  # noqa: S701 - it reads tokens, and renders nothing
_BEGINNINGS = {"variable_begin": True, "block_begin": False}
_ENDS = ("variable_end", "block_end")


@dataclass(frozen=True)
class TemplateWords:
    """The words of a template, the `names` in its Jinja, the `variables` that var() reads (None if a variable's name is
    computed), and the values that config() sets, by key.

    `words` ignore comments, white space, and the letter case of `KEYWORDS`, but not hints. If a tag divides an SQL
    token, such as a string, `words` are the unchanged pieces of the template.
    """

    words: tuple[str, ...]
    names: frozenset[str]
    variables: frozenset[str] | None
    config: Mapping[str, tuple[str, ...]]


def read_template(text: str) -> TemplateWords:
    """Returns the words of the template `text`."""
    return _read_pieces(split_template(text))


def read_macros(texts: Iterable[str]) -> Mapping[str, tuple[TemplateWords, ...]]:
    """Returns the words of each macro in the files `texts`, by name: its own, and those outside the macros of its file.

    A nested macro belongs to the outer one.
    """
    macros: dict[str, tuple[TemplateWords, ...]] = {}
    for text in texts:
        own, around = _split_macros(split_template(text))
        outside = _read_pieces(around)
        macros |= {name: (*macros.get(name, ()), _read_pieces(pieces), outside) for name, pieces in own.items()}
    return macros


def _split_macros(pieces: Iterable[Piece]) -> tuple[dict[str, list[Piece]], list[Piece]]:
    """Returns the pieces of each macro, tags included, and those outside all macros."""
    own: dict[str, list[Piece]] = {}
    around: list[Piece] = []
    open_macro: list[Piece] | None = None
    depth = 0
    for piece in pieces:
        tag = piece.tokens[0] if isinstance(piece, Code) and not piece.is_output and piece.tokens else ""
        if isinstance(piece, Code) and tag == "macro" and len(piece.tokens) > 1:
            depth += 1
            open_macro = own.setdefault(piece.tokens[1], []) if depth == 1 else open_macro
        (around if open_macro is None else open_macro).append(piece)
        depth -= tag == "endmacro"
        open_macro = None if depth == 0 else open_macro
    return own, around


def _read_pieces(pieces: Sequence[Piece]) -> TemplateWords:
    codes = [piece for piece in pieces if isinstance(piece, Code)]
    names = frozenset(token for code in codes for token in code.tokens if token.isidentifier())
    config = {key: value for code in codes for key, value in _config(code.tokens)}
    return TemplateWords(_words(pieces, codes), names, _variables(codes), config)


def _words(pieces: Sequence[Piece], codes: Sequence[Code]) -> tuple[str, ...]:
    unchanged = tuple(map(str, pieces))
    mark = _unused_character(unchanged)
    sql = "".join(mark if isinstance(piece, Code) else piece for piece in pieces)
    try:
        tokens = sorted([*flatten_hints(tokenize(sql)), *_comments_with_code(sql, mark)], key=lambda token: token.start)
    except SqlTokenError:
        return unchanged
    if sum(token.text.count(mark) for token in tokens) != len(codes):
        return unchanged
    remaining = iter(codes)
    words: list[str] = []
    for before, token, after in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        code = [next(remaining) for _ in range(token.text.count(mark))]
        if token.text != mark and not all(item.is_output for item in code):
            return unchanged
        if before is not None and _is_joined(before, token, mark):
            words.append(GLUE)
        words.append(_filled(token.text, mark, code) if code else _spelled(before, token, after))
    while words and words[-1] == ";":
        words.pop()
    return tuple(words)


def _is_joined(before: Token, token: Token, mark: str) -> bool:
    pair = {before.text, token.text}
    return mark in pair and before.end == token.start and pair.isdisjoint(NEUTRAL)


def _filled(text: str, mark: str, codes: Sequence[Code]) -> str:
    for code in codes:
        text = text.replace(mark, str(code), 1)
    return text


def _spelled(before: Token | None, token: Token, after: Token | None) -> str:
    if token.kind is not TokenKind.WORD or token.key not in KEYWORDS:
        return token.text
    is_name = (before is not None and before.key in (".", "AS")) or (after is not None and after.key == ".")
    return token.text if is_name else token.key


def _comments_with_code(sql: str, mark: str) -> Iterator[Token]:
    """Yields the comments that contain Jinja. It runs there too, and its output can end the comment."""
    for start, text in find_comments(sql):
        if mark in text:
            yield Token(TokenKind.STRING, text, start, start + len(text))


def _unused_character(texts: Iterable[str]) -> str:
    """Returns a character of Unicode's private use area that none of the texts contains."""
    used = set().union(*texts)
    return next(letter for letter in map(chr, range(0xE000, 0xF8FF)) if letter not in used)


def _variables(codes: Sequence[Code]) -> frozenset[str] | None:
    calls = [code.tokens[at + 1 : at + 3] for code in codes for at, word in enumerate(code.tokens) if word == "var"]
    names = [string_of(call[1]) if call[:1] == ("(",) else None for call in calls]
    known = frozenset(name for name in names if name is not None)
    return None if None in names else known


def _config(tokens: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields each key that config() sets with the tokens of its value. Positional arguments have the empty key."""
    if tokens[:1] == ("do",):
        tokens = tokens[1:]
    if tokens[:2] != ("config", "("):
        return
    argument: list[str] = []
    depth = 0
    for word in (*tokens[2:-1], ","):
        depth += (word in OPENING) - (word in CLOSING)
        if word != "," or depth > 0:
            argument.append(word)
        elif argument:
            yield _keyed(argument)
            argument = []


def _keyed(argument: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    is_named = len(argument) > 2 and argument[1] == "="
    return (argument[0], tuple(argument[2:])) if is_named else ("", tuple(argument))


@dataclass(frozen=True)
class Code:
    """One `{{ ... }}` (`is_output`) or `{% ... %}`.

    `tokens` are its names, numbers, signs and strings in order, without blanks. All strings have the same quotes.
    """

    is_output: bool
    tokens: tuple[str, ...]

    def __str__(self) -> str:
        opening, closing = ("{{", "}}") if self.is_output else ("{%", "%}")
        return " ".join((opening, *self.tokens, closing))


Piece = str | Code
"""Text, or the Jinja between two texts."""


def split_template(text: str) -> tuple[Piece, ...]:
    """Returns the pieces of a template in order, without its Jinja comments.

    Texts do not contain what `-` strips or the tags of `raw`. An unreadable template is one text, as written.
    """
    try:
        return tuple(_pieces(text))
    except TemplateSyntaxError:
        return (text,)


def string_of(token: str) -> str | None:
    """Returns the text of a string token of `Code`, None for other tokens."""
    return token[1:] if token.startswith("'") else None


def _pieces(text: str) -> Iterator[Piece]:
    texts: list[str] = []
    tokens: list[str] = []
    is_output = is_open = False
    for _, kind, value in _LEXER.tokeniter(text, None):
        if kind == "data":
            texts.append(value)
        elif kind in _BEGINNINGS:
            is_output, tokens, is_open = _BEGINNINGS[kind], [], True
        elif kind in _ENDS:
            yield "".join(texts)
            texts, is_open = [], False
            yield Code(is_output, tuple(tokens))
        elif kind in ("name", "operator", "integer", "float", "string"):
            tokens.append(_string(value) if kind == "string" else value)
    if is_open:
        raise TemplateSyntaxError("a tag has no end", 1)
    yield "".join(texts)


def _string(quoted: str) -> str:
    """A string as a quote and its text, so both kinds of quotes yield the same token."""
    return "'" + quoted[1:-1].encode("ascii", "backslashreplace").decode("unicode-escape")
