"""The findings for YAML text, in words for readers who do not know YAML's grammar."""

from __future__ import annotations

import re

import yaml

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import LONGEST_NAME, given, quoted
from sqlstream.project.yaml.mistakes import find_mistake

_PROBLEMS: tuple[tuple[str, str, str], ...] = (
    (
        "found character that cannot start any token",
        "a value cannot start with this character",
        "put the value in quotes; YAML allows only spaces for indentation, not tabs",
    ),
    (
        "mapping values are not allowed",
        "a second `:` appears where no key can start",
        "put a value that contains `: ` in quotes, or fix the indentation of this line",
    ),
    (
        "could not find expected ':'",
        "a key has no `:` after it",
        "use `key: value` with a space after the colon, or indent the line as part of the value above",
    ),
    (
        "did not find expected key",
        "this line belongs neither to the mapping above nor to its values",
        "align it with the other keys, and put values that start or end with a quote completely in quotes",
    ),
    (
        "did not find expected '-' indicator",
        "this line is not an entry of the list above",
        "start it with `- `, aligned with the other entries",
    ),
    (
        "did not find expected ',' or",
        "an open bracket or brace is not closed",
        "close it with `]` or `}`, and separate its entries with commas",
    ),
    (
        "did not find expected node content",
        "a value is missing before this position",
        "add the value, and close each open bracket or brace",
    ),
    (
        "found unexpected end of stream",
        "an open quotation mark is not closed",
        "close the quotation mark",
    ),
    (
        "block sequence entries are not allowed",
        "a list cannot start on this line",
        "start the list on a separate line below its key",
    ),
    (
        "found undefined tag handle",
        "a word that starts with `!` is a YAML tag",
        "put the value in quotes",
    ),
    (
        "found unknown escape character",
        "this backslash escape does not exist in double quotes",
        "use single quotes, in which a backslash is a normal character",
    ),
    (
        "control characters are not allowed",
        "the file contains an invisible control character here",
        "remove the character",
    ),
    (
        "special characters are not allowed",
        "the file contains an invisible control character here",
        "remove the character",
    ),
)
"""The start of libyaml's problem, the reason, and the fix. The first entry that occurs in the problem applies."""

UNCLOSED = re.compile("did not find expected ',' or|found unexpected end of stream")
"""libyaml's problems that are caused by an opening quote or bracket, not by the end of the file."""


def syntax_problem(error: yaml.YAMLError, text: str, location: Location) -> Finding:
    """Returns the finding for text that PyYAML cannot read."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not valid YAML")
    line = text.split("\n", location.line)[location.line - 1 : location.line]
    if line and "\t" in line[0][: location.column]:
        return tab_in_indentation(location)
    mistake = find_mistake(text)
    if mistake is not None:
        place = Location(location.path, mistake.line, mistake.column)
        return Finding("yaml-syntax", "this YAML cannot be parsed", mistake.why, mistake.fix, place)
    for start, why, fix in _PROBLEMS:
        if start in problem:
            return Finding("yaml-syntax", "this YAML cannot be parsed", why, fix, location)
    fix = "fix the line; put text with special characters in quotes"
    return Finding("yaml-syntax", "this YAML cannot be parsed", f"the YAML parser reports: {problem}", fix, location)


def tab_in_indentation(location: Location) -> Finding:
    """Returns the finding for a tab where YAML needs spaces."""
    return Finding(
        "yaml-syntax",
        "a tab is used where YAML allows only spaces",
        "YAML uses indentation for structure, and a tab has no fixed width",
        "replace the tab with spaces",
        location,
    )


def duplicate_key(key: str, first: Location, second: Location, *, begins_entry: bool = False) -> Finding:
    """Returns the finding for a repeated key. `begins_entry`: an entry of a list begins with this key, so a dash may be
    missing.
    """
    fix = "remove one of them, or merge their values"
    return Finding(
        "yaml-duplicate-key",
        f"the key {quoted(key)} appears twice, in lines {first.line} and {second.line}",
        "only one of the values could be used, and YAML does not define which",
        f"if this is a new entry of the list, add `- ` before it; otherwise {fix}" if begins_entry else fix,
        second,
    )


def several_documents(location: Location) -> Finding:
    """Returns the finding for a second document in a file."""
    return Finding(
        "yaml-syntax",
        "a second document starts here",
        "a line `---` ends a YAML document, but a project file must be a single document",
        "remove the line, or move the rest to another file",
        location,
    )


def key_not_text(rest_of_line: str, location: Location) -> Finding:
    """Returns the finding for a list or mapping used as a key, most often Jinja without quotes."""
    if rest_of_line.startswith("{"):
        return Finding(
            "invalid-value",
            "Jinja in YAML must be in quotes",
            "without quotes, YAML reads `{` as the start of a mapping",
            f"put the whole value in quotes: {_in_quotes(rest_of_line)}",
            location,
        )
    return Finding(
        "invalid-value",
        "a list or mapping cannot be a key",
        "keys are text",
        "write the key as a single word, or put it in quotes",
        location,
    )


def _in_quotes(rest_of_line: str) -> str:
    """Jinja in a line, inside quotes that belong to the YAML."""
    value = rest_of_line.split(" #", 1)[0].strip()
    value = value if value.startswith("{{") else "{" + value
    within_braces = re.match(r"(\{\{.*?\}\}) *[,}\]]", value)
    value = within_braces[1] if within_braces else value
    if not value.startswith("{{") or len(value) > LONGEST_NAME or ("'" in value and '"' in value):
        return "\"{{ var('name') }}\""
    return f"'{value}'" if '"' in value else f'"{value}"'


def too_nested(deepest: int, location: Location) -> Finding:
    """Returns the finding for a file nested deeper than `deepest` levels."""
    return Finding(
        "yaml-too-large",
        f"the YAML is nested more than {deepest} levels deep",
        "project files need only a few levels",
        "flatten the structure, or close brackets that were opened by mistake",
        location,
    )


def too_large(most: int, location: Location) -> Finding:
    """Returns the finding for a file of more than `most` values."""
    return Finding(
        "yaml-too-large",
        f"the YAML has more than {most:,} values after its aliases are expanded",
        "an alias `*name` repeats everything that `&name` marks, so aliases of aliases multiply",
        "use fewer aliases, or split the file",
        location,
    )


def contains_itself(anchor: str, location: Location) -> Finding:
    """Returns the finding for an alias inside the value that it repeats."""
    return Finding(
        "yaml-too-large",
        f"the value of {quoted('&' + anchor)} contains itself",
        "the alias is inside the value that it repeats, so it would never end",
        "remove the alias from the value, or write the inner value without it",
        location,
    )


def unsupported_tag(tag: str | None, location: Location) -> Finding:
    """Returns the finding for an explicit tag that has no meaning here, or does not fit its value."""
    return Finding(
        "yaml-syntax",
        f"the YAML tag {quoted(str(tag))} is not allowed here",
        "sqlstream supports text, numbers, true, false, null, lists and mappings",
        "remove the tag, or put the value in quotes if it starts with `!`",
        location,
    )


def not_mergeable(location: Location) -> Finding:
    """Returns the finding for `<<` with a value without keys."""
    return Finding(
        "invalid-value",
        "`<<` needs a mapping, or a list of mappings",
        "it copies the keys of another mapping to this one",
        "add an alias of a mapping after it, for example `<<: *defaults`",
        location,
    )


def undefined_alias(anchor: str, location: Location) -> Finding:
    """Returns the finding for an alias without an anchor."""
    return Finding(
        "yaml-syntax",
        f"there is no anchor {quoted('&' + anchor)} above this alias",
        "an alias `*name` repeats a value that was marked with `&name` above",
        "mark the value with the anchor, or put the text in quotes if it starts with a literal `*`",
        location,
    )


def not_a_mapping(value: object, location: Location) -> Finding:
    """Returns the finding for a file that is a list or a single value."""
    return Finding(
        "invalid-value",
        f"the file must be a mapping, but is {given(value)}",
        "every project file consists of keys and values",
        "start with a key, for example `version: 2`",
        location,
    )
