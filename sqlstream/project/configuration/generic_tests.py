"""The generic tests of a project, as in dbt: blocks `{% test name(model) %}` in macros/ and tests/generic/."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location, location_at

_BLOCK = re.compile(r"\{%[-+]?\s*(?:data_)?test\s+(?P<name>\w+)\s*\(")
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_QUOTED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_PARAMETER = re.compile(r"\s*(\w+)\s*(=)?")

MODEL, COLUMN = "model", "column_name"
"""The parameters to which the model and the column of a test are passed, as in dbt."""


@dataclass(frozen=True)
class GenericTest:
    """A generic test and its parameters: whether each, beside `model`, has a default."""

    name: str
    parameters: Mapping[str, bool]
    location: Location


def find_generic_tests(files: Iterable[tuple[str, str]], findings: list[Finding]) -> Mapping[str, GenericTest]:
    """Returns the generic tests in `files`, paths with their texts, by name. Adds a finding for each that has no
    parameter `model`.
    """
    found: dict[str, GenericTest] = {}
    for path, text in files:
        code = _COMMENT.sub(lambda match: " " * len(match[0]), text)
        for match in _BLOCK.finditer(code):
            location = location_at(path, text, match.start("name"))
            parameters = dict(_parameters(_inside(code, match.end())))
            if MODEL not in parameters:
                what = f"the data test `{match['name']}` has no parameter `{MODEL}`"
                why = "the rows of the tested model are passed as `model`, and a column as `column_name`"
                fix = f"write {{% test {match['name']}(model, column_name) %}}"
                findings.append(Finding("data-test", what, why, fix, location))
            others = {name: has_default for name, has_default in parameters.items() if name != MODEL}
            found.setdefault(match["name"], GenericTest(match["name"], others, location))
    return found


def _inside(code: str, start: int) -> str:
    """Returns the text from `start` up to the parenthesis that ends it, with a `_` for each character in quotes."""
    code = code[start : code.find("%}", start)]
    code = _QUOTED.sub(lambda match: "_" * len(match[0]), code)
    depth = 1
    for offset, character in enumerate(code):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        if depth == 0:
            return code[:offset]
    return code


def _parameters(code: str) -> Iterator[tuple[str, bool]]:
    depth, start = 0, 0
    for offset, character in enumerate(f"{code},"):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if match := _PARAMETER.match(code, start, offset):
                yield match[1], match[2] is not None
            start = offset + 1
