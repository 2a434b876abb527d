"""The findings of YAML text, in words that need no knowledge of YAML's grammar."""

from __future__ import annotations

import re

import yaml

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import LONGEST_NAME, given, quoted
from sqlstream.project.yaml.slips import find_slip

_PROBLEMS: tuple[tuple[str, str, str], ...] = (
    (
        "found character that cannot start any token",
        "this character cannot begin a value",
        "put the value in quotes; YAML allows no tabs for indentation, only spaces",
    ),
    (
        "mapping values are not allowed",
        "a second `:` stands where no key can begin",
        "put a value that holds `: ` in quotes, or correct the indentation of this line",
    ),
    (
        "could not find expected ':'",
        "a key has no `:` after it",
        "write `key: value` with a space after the colon, or indent the line as part of the value above",
    ),
    (
        "did not find expected key",
        "this line fits neither the mapping above nor its values",
        "align it with the keys it belongs to, and put values that begin or end with quotes wholly in quotes",
    ),
    (
        "did not find expected '-' indicator",
        "this line is not an entry of the list above",
        "begin it with `- `, aligned with the other entries",
    ),
    (
        "did not find expected ',' or",
        "a bracket or brace that was opened is not closed",
        "close it with `]` or `}`, and separate its entries with commas",
    ),
    (
        "did not find expected node content",
        "a value is missing before this place",
        "write the value, and close each bracket or brace that was opened",
    ),
    (
        "found unexpected end of stream",
        "a quotation mark that was opened is not closed",
        "close the quotation mark",
    ),
    (
        "block sequence entries are not allowed",
        "a list cannot begin on this line",
        "begin the list on a line of its own below its key",
    ),
    (
        "found undefined tag handle",
        "a word that begins with `!` is a YAML tag",
        "put the value in quotes",
    ),
    (
        "found unknown escape character",
        "a backslash in double quotes begins an escape, and this one does not exist",
        "use single quotes, in which a backslash is itself",
    ),
    (
        "control characters are not allowed",
        "the file holds an invisible control character here",
        "delete the character",
    ),
    (
        "special characters are not allowed",
        "the file holds an invisible control character here",
        "delete the character",
    ),
)
"""The start of libyaml's problem, why it is one, and what to do; the first that occurs in the problem counts."""

UNCLOSED = re.compile("did not find expected ',' or|found unexpected end of stream")
"""libyaml's problems whose cause is where the quote or bracket was opened, and not where the file ends."""


def syntax_problem(error: yaml.YAMLError, text: str, location: Location) -> Finding:
    """Returns the finding for text that PyYAML cannot read."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not YAML")
    line = text.split("\n", location.line)[location.line - 1 : location.line]
    if line and "\t" in line[0][: location.column]:
        return tab_in_indentation(location)
    slip = find_slip(text)
    if slip is not None:
        place = Location(location.path, slip.line, slip.column)
        return Finding("yaml-syntax", "this YAML cannot be read", slip.why, slip.fix, place)
    for start, why, fix in _PROBLEMS:
        if start in problem:
            return Finding("yaml-syntax", "this YAML cannot be read", why, fix, location)
    fix = "correct the line; text with special characters belongs in quotes"
    return Finding("yaml-syntax", "this YAML cannot be read", f"YAML's parser says: {problem}", fix, location)


def tab_in_indentation(location: Location) -> Finding:
    """Returns the finding for a tab where YAML wants spaces."""
    return Finding(
        "yaml-syntax",
        "there is a tab where YAML allows only spaces",
        "YAML's structure is its indentation, and a tab has no fixed width",
        "replace the tab with spaces",
        location,
    )


def duplicate_key(key: str, first: Location, second: Location, *, begins_entry: bool = False) -> Finding:
    """Returns the finding for a key that a mapping has twice.

    `begins_entry` says that an entry of a list begins with this key: then a dash may be missing.
    """
    fix = "delete one of them, or merge their values"
    return Finding(
        "yaml-duplicate-key",
        f"the key {quoted(key)} is there twice, in lines {first.line} and {second.line}",
        "only one of the two values could count, and YAML does not say which",
        f"if a new entry of the list begins here, write `- ` before it; otherwise {fix}" if begins_entry else fix,
        second,
    )


def several_documents(location: Location) -> Finding:
    """Returns the finding for a second document in a file."""
    return Finding(
        "yaml-syntax",
        "a second document begins here",
        "a line `---` ends a YAML document, and a project file is one document",
        "delete the line, or move what follows to a file of its own",
        location,
    )


def key_not_text(rest_of_line: str, location: Location) -> Finding:
    """Returns the finding for a list or mapping used as a key, most often Jinja without quotes."""
    if rest_of_line.startswith("{"):
        return Finding(
            "invalid-value",
            "Jinja in YAML must be in quotes",
            "without quotes YAML reads `{` as the beginning of a mapping",
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
    """Jinja that stands in a line, in quotes that it does not have itself."""
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
        "no project file has a use for so many levels",
        "flatten the structure, or close the brackets that were opened by mistake",
        location,
    )


def too_large(most: int, location: Location) -> Finding:
    """Returns the finding for a file of more than `most` values."""
    return Finding(
        "yaml-too-large",
        f"the YAML has more than {most:,} values once its aliases are written out",
        "an alias `*name` repeats all that `&name` marks, so aliases of aliases multiply",
        "write out fewer aliases, or split the file",
        location,
    )


def contains_itself(anchor: str, location: Location) -> Finding:
    """Returns the finding for an alias inside the value that it repeats."""
    return Finding(
        "yaml-too-large",
        f"the value of {quoted('&' + anchor)} contains itself",
        "the alias here repeats a value that has not ended yet, so it would never end",
        "take the alias out of the value, or write the inner value out",
        location,
    )


def unsupported_tag(tag: str | None, location: Location) -> Finding:
    """Returns the finding for an explicit tag that means nothing here, or does not fit its value."""
    return Finding(
        "yaml-syntax",
        f"the YAML tag {quoted(str(tag))} cannot be used here",
        "sqlstream reads text, numbers, true, false, null, lists and mappings",
        "delete the tag, or put the value in quotes if it begins with `!`",
        location,
    )


def not_mergeable(location: Location) -> Finding:
    """Returns the finding for `<<` with a value that has no keys."""
    return Finding(
        "invalid-value",
        "`<<` takes a mapping, or a list of mappings",
        "it copies the keys of another mapping to this one",
        "write an alias of a mapping after it, for example `<<: *defaults`",
        location,
    )


def undefined_alias(anchor: str, location: Location) -> Finding:
    """Returns the finding for an alias without an anchor."""
    return Finding(
        "yaml-syntax",
        f"there is no anchor {quoted('&' + anchor)} above this alias",
        "an alias `*name` repeats the value that was marked with `&name` further up",
        "mark the value with the anchor, or put the text in quotes if it only begins with a star",
        location,
    )


def not_a_mapping(value: object, location: Location) -> Finding:
    """Returns the finding for a file that is a list or a single value."""
    return Finding(
        "invalid-value",
        f"the file must be a mapping, and is {given(value)}",
        "every project file consists of keys with values",
        "begin with a key, for example `version: 2`",
        location,
    )
