"""Mutations of YAML files."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from tests.fuzz.fuzz_jinja import expression
from tests.fuzz.fuzz_pools import insert, odd_text, size

VALUES = (
    *("null", "~", "", "[]", "{}", "[[]]", "[{}]", "{a: b}", "[a, [b, {c: d}]]", "true", "no", "off", "y", "0", "-1"),
    *("00", "1_000", "0x1F", "0o17", "017", "1e400", "-1e400", ".inf", "-.inf", ".nan", "12:30:45", "190:20:30.15"),
    *("=", "<<", "2024-01-01", "2024-02-30", "2024-01-01T00:00:00Z", "0001-01-01"),
    *("9999-12-31 23:59:59.999999999 +14:00", "!!python/object/apply:os.system [id]", "!!binary aGk=", "!!set {a, b}"),
    *("!!omap [a: 1]", "!!str 5", "!!int x", "!!float x", "!!timestamp x", "!!null x", "!!bool x", "!!map []"),
    *("!!seq {}", "!foo bar", "! x", "!<tag:x> y", "*a", "&a b", "&a [*a]", "'", '"', "|", ">", "|9", "|+"),
    *(">-\n  a\n\n  b", "'a''b'", '"\\x00"', '"\\ud800"', '"\\U00110000"', '"\\e[31m"', '"\\N\\L\\P"', "? a", "- a"),
    *("@a", "`a", "%a", "a: b: c", "a #b", "#", "[a", "{a", "]", "}", ",", ": ", "10 seconds"),
    *("{continuous: 1 second}", "{real_time: 0 minutes}", "available_now", "-5 minutes", "1 fortnight", "complete"),
    *("update", "append", "stream", "batch", "kafka", "json", "../x", "/", "local[*]", "sc://x", "s3://b/k", "a int"),
    *("a struct<b: array<int>>", "a int, a int", "a decimal(99, -1)", "struct<", "array<array<", "a map<int>"),
)
"""Values that replace others."""

KEYS = (
    *("name", "version", "vars", "targets", "models", "seeds", "sources", "sinks", "tables", "columns", "options"),
    *("path", "schema", "schema_file", "format", "mode", "watermark", "column", "delay", "trigger", "output_mode"),
    *("partition_by", "+tags", "+trigger", "+enabled", "config", "meta", "tags", "description", "master", "storage"),
    *("spark", "packages", "?", "null", "1", "1.5", "true", "[a]", "{a: b}", "2024-01-01", "<<", "''", "ref"),
    *("data_type", "column_types"),
)
"""Keys that replace others."""

_SCALAR = re.compile(r"(?P<before>(?::|-)[ ]+)(?P<value>[^\n#]+)")
_KEY = re.compile(r"(?P<before>^[ ]*(?:- )?)(?P<value>[\w+.-]+)(?=:)", re.MULTILINE)


def _lines(change: Callable[[Random, list[str]], None]) -> Callable[[Random, str], str]:
    def mutation(rng: Random, text: str) -> str:
        lines = text.split("\n")
        change(rng, lines)
        return "\n".join(lines)

    mutation.__name__ = change.__name__
    return mutation


@_lines
def delete_lines(rng: Random, lines: list[str]) -> None:
    """Removes one or more adjacent lines."""
    at = rng.randrange(len(lines))
    del lines[at : at + size(rng, 5)]


@_lines
def duplicate_lines(rng: Random, lines: list[str]) -> None:
    """Repeats some lines, possibly many times."""
    at = rng.randrange(len(lines))
    lines[at:at] = lines[at : at + size(rng, 5)] * size(rng, 300)


@_lines
def swap_lines(rng: Random, lines: list[str]) -> None:
    """Swaps two lines."""
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


@_lines
def indent_line(rng: Random, lines: list[str]) -> None:
    """Changes the indentation of a line, sometimes with tabs."""
    at = rng.randrange(len(lines))
    lines[at] = rng.choice(("", " ", "  ", "   ", "      ", "\t", " \t", "\u00a0", " " * 5000)) + lines[at].lstrip()


def replace_value(rng: Random, text: str) -> str:
    """Replaces a value by an odd one."""
    return _replaced(rng, _SCALAR, text, rng.choice(VALUES))


def replace_value_by_text(rng: Random, text: str) -> str:
    """Replaces a value by an odd text, quoted or not."""
    quote = rng.choice(("", "'", '"'))
    return _replaced(rng, _SCALAR, text, f"{quote}{odd_text(rng)}{quote}")


def replace_value_by_template(rng: Random, text: str) -> str:
    """Replaces a value by a template."""
    return _replaced(rng, _SCALAR, text, '"' + rng.choice(("", "a/", " ")) + "{{ " + expression(rng) + ' }}"')


def replace_value_by_number(rng: Random, text: str) -> str:
    """Replaces a value by a very large or small number."""
    number = rng.choice(("9", "-9", "0.", "1e", "0x", ".")) + "9" * size(rng, 20_000)
    return _replaced(rng, _SCALAR, text, number)


def replace_key(rng: Random, text: str) -> str:
    """Replaces a key by another one."""
    return _replaced(rng, _KEY, text, rng.choice((*KEYS, odd_text(rng))))


def insert_pair(rng: Random, text: str) -> str:
    """Adds a key with a value, at some depth."""
    lines = text.split("\n")
    lines.insert(rng.randint(0, len(lines)), " " * rng.randrange(9) + f"{rng.choice(KEYS)}: {rng.choice(VALUES)}")
    return "\n".join(lines)


def insert_text(rng: Random, text: str) -> str:
    """Inserts an odd text."""
    return insert(rng, text, odd_text(rng))


def nest(rng: Random, text: str) -> str:
    """Replaces a value by very deep nesting."""
    depth = size(rng, 20_000)
    opening, closing = rng.choice(
        (("[", "]"), ("{a: ", "}"), ("{", "}"), ("[{a: ", "}]"), ("? ", ""), ("- ", ""), ("!!str ", ""))
    )
    return _replaced(rng, _SCALAR, text, opening * depth + closing * rng.choice((depth, 0)))


def bomb(rng: Random, text: str) -> str:
    """Adds aliases of aliases, and sometimes replaces a value by one."""
    depth = rng.randint(2, 40)
    width = rng.choice((2, 9))
    merge = rng.random() < 0.3
    levels = [f"l0: &l0 {'{a: b}' if merge else '[a, b]'}"]
    for level in range(1, depth):
        uses = ", ".join([f"*l{level - 1}"] * width)
        levels.append(
            f"l{level}: &l{level} " + (f"{{<<: [{uses}], k{level}: *l{level - 1}}}" if merge else f"[{uses}]")
        )
    used = _replaced(rng, _SCALAR, text, f"*l{depth - 1}") if rng.random() < 0.5 else text
    return "\n".join(levels) + "\n" + used


def many_keys(rng: Random, text: str) -> str:
    """Adds a mapping with very many keys."""
    return text + f"\n{rng.choice(KEYS)}:\n" + "".join(f"  k{index}: {index}\n" for index in range(size(rng, 20_000)))


def insert_document(rng: Random, text: str) -> str:
    """Adds directives and document separators."""
    return insert(
        rng, text, rng.choice(("\n---\n", "\n...\n", "%YAML 9.9\n---\n", "%TAG ! x\n---\n", "--- a\n", "\n---\n" * 500))
    )


def _replaced(rng: Random, pattern: re.Pattern[str], text: str, value: str) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return insert(rng, text, value)
    match = rng.choice(found)
    return text[: match.start()] + match["before"] + value + text[match.end() :]


YAML_MUTATIONS: tuple[Callable[[Random, str], str], ...] = (
    *(delete_lines, duplicate_lines, swap_lines, indent_line, replace_value, replace_value_by_text, replace_key),
    *(replace_value_by_template, replace_value_by_number, insert_pair, insert_text, nest, bomb, many_keys),
    *(insert_document, replace_value, replace_key, insert_pair),
)
"""Mutations of a YAML file's text. Repeated ones are more likely."""
