"""The findings for YAML text, in words for readers who do not know YAML's grammar; common mistakes are found by trying
repairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import yaml

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.numbers import plural
from sqlstream.project.wording import LONGEST_NAME, given, quoted

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


# Common mistakes in YAML, found by trying repairs: a repair that makes the text readable shows the mistake.
#
# libyaml reports a mistake only at the point where the grammar no longer fits, often a line later.

LONGEST_TEXT = 50_000
"""The most characters of a text that is parsed again for each repair, which takes a few milliseconds."""

LINES_BACK = 3
"""The lines before libyaml's error in which the mistake may be."""

_ENTRY = re.compile(r"(?P<indent> *)(?P<dash>- +)?(?P<key>[\w.+-]+):(?: +(?P<value>\S.*?))?\s*$")
_ITEM = re.compile(r" *- +(?P<value>\S.*?)\s*$")
_NO_SPACE = re.compile(r"(?P<before> *(?:- +)?)(?P<key>[\w+-]+):(?P<value>[^\s:/].*)$")
_NO_DASH_SPACE = re.compile(r"(?P<before> *)-(?P<rest>\w[\w.+-]*:.*)$")
_NO_COLON = re.compile(r"(?P<before> *(?:- +)?)(?P<key>[\w+-]+)\s*$")
_NO_COMMA = re.compile(r"(?P<before>[\w\"']) +(?P<after>[\w-]+: )")
_ODD_STARTS = "@`%*&!?,]}"


@dataclass(frozen=True)
class Mistake:
    """A mistake and its repair. Line and column count from 1."""

    line: int
    column: int
    why: str
    fix: str


@dataclass(frozen=True)
class _Repair:
    mistake: Mistake
    lines: list[str]


def find_mistake(text: str) -> Mistake | None:
    """Returns the mistake in an unreadable text, None if no repair helps.

    A repair helps if the whole text becomes readable, or everything up to a later line.
    """
    wrong = _wrong_line(text) if len(text) <= LONGEST_TEXT else None
    if wrong is None:
        return None
    lines = text.split("\n")
    for repair in _repairs(lines, min(wrong, len(lines) - 1)):
        left = _wrong_line("\n".join(repair.lines))
        if left is None or left > wrong:
            return repair.mistake
    return None


def _wrong_line(text: str) -> int | None:
    """The 0-based line of libyaml's error, None if the text is readable."""
    try:
        for _ in yaml.parse(text, yaml.CSafeLoader):
            pass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return mark.line if mark is not None else 0
    except yaml.YAMLError:
        return 0
    return None


def _repairs(lines: list[str], wrong: int) -> Iterator[_Repair]:
    """Yields the repairs to try, the most certain first."""
    near = [at for at in range(wrong, -1, -1) if lines[at].strip()][: LINES_BACK + 1]
    for change in _CHANGES:
        for at in near:
            yield from _changed(lines, at, change)
    yield from _missing_dash(lines, near[0]) if near else ()
    for at in near[:2]:
        yield from _changed(lines, at, _missing_colon_before_value)
        yield from _wrong_indentation(lines, at)
    for at in near[1:2]:
        yield from _changed(lines, at, _value_and_block)


_Change = Callable[[str], tuple[str, int, str, str] | None]
"""Returns the repaired line, the offset of the mistake, the reason, and the fix."""


def _changed(lines: list[str], at: int, change: _Change) -> Iterator[_Repair]:
    found = change(lines[at])
    if found is not None:
        line, offset, why, fix = found
        yield _Repair(Mistake(at + 1, offset + 1, why, fix), [*lines[:at], line, *lines[at + 1 :]])


def _missing_space_after_dash(line: str) -> tuple[str, int, str, str] | None:
    if (match := _NO_DASH_SPACE.match(line)) is None:
        return None
    fix = f"use {quoted('- ' + match['rest'])}"
    return f"{match['before']}- {match['rest']}", match.end("before"), "a list entry starts with `- `", fix


def _missing_space_after_aligned_dash(line: str) -> tuple[str, int, str, str] | None:
    """The same if the lines below are aligned with the key as written."""
    found = _missing_space_after_dash(line)
    return (found[0][1:], *found[1:]) if found is not None and line.startswith(" ") else None


def _missing_space_after_colon(line: str) -> tuple[str, int, str, str] | None:
    if (match := _NO_SPACE.match(line)) is None:
        return None
    written = f"{match['key']}: {match['value']}"
    why = f"there is no space after the colon of {quoted(match['key'])}"
    return f"{match['before']}{written}", match.start("key"), why, f"use {quoted(written)}"


def _missing_colon(line: str) -> tuple[str, int, str, str] | None:
    if (match := _NO_COLON.match(line)) is None:
        return None
    why = f"there is no colon after {quoted(match['key'])}"
    return f"{match['before']}{match['key']}:", match.start("key"), why, f"use {quoted(match['key'] + ':')}"


def _missing_colon_before_value(line: str) -> tuple[str, int, str, str] | None:
    match = re.match(r"(?P<before> *(?:- +)?)(?P<key>[a-z][\w+-]*) +(?P<value>[^\s:-].*)$", line)
    if match is None:
        return None
    written = f"{match['key']}: {match['value']}"
    why = f"there is no colon after {quoted(match['key'])}"
    return match["before"] + written, match.start("key"), why, f"use {quoted(written)}"


def _value_of(line: str, other: re.Pattern[str] | None = None) -> tuple[int, str]:
    """The offset and text of the value in a line `key: value`, or in a line of the form `other`; empty without one."""
    entry = _ENTRY.match(line) or (other.match(line) if other else None)
    return (entry.start("value"), entry["value"] or "") if entry else (0, "")


def _missing_quotes(line: str) -> tuple[str, int, str, str] | None:
    """A value that contains a colon, or begins with a special character of YAML or with a quotation that ends before
    the value.
    """
    start, value = _value_of(line, _ITEM)
    if not value:
        return None
    written = "'" + value.replace("'", "''") + "'"
    fix = f"put the whole value in quotes: {quoted(written)}"
    if value[0] in _ODD_STARTS or value.startswith("{%"):
        return line[:start] + written, start, f"without quotes, a value cannot start with {value[:1]}", fix
    if value[0] in "\"'" and not value.endswith(value[0]) and value.count(value[0]) > 1:
        if "{{" in value:
            written = value[0] + value.replace(value[0], "") + value[0]
            fix = f"put the whole value in quotes: {quoted(written)}"
        return line[:start] + written, start, "the value continues after its closing quotation mark", fix
    if value[0] not in "\"'[{" and (": " in value or value.endswith(":")):
        return line[:start] + written, start, "the value contains a colon, which starts a separate value", fix
    return None


def _apostrophe_in_quotes(line: str) -> tuple[str, int, str, str] | None:
    start, value = _value_of(line)
    if len(value) < 3 or not (value[0] == value[-1] == "'") or '"' in value:
        return None
    written = f'"{value[1:-1]}"'
    why = "an apostrophe in single quotes ends the text"
    return line[:start] + written, start, why, f"use double quotes: {quoted(written)}"


def _missing_quote(line: str) -> tuple[str, int, str, str] | None:
    start, value = _value_of(line)
    mark = value[:1]
    if mark not in ("'", '"') or value.count(mark) != 1:
        return None
    fix = f"close it at the end of the text: {quoted(value + mark)}"
    return line[:start] + value + mark, start, "the quotation mark that opens here is not closed", fix


def _missing_comma(line: str) -> tuple[str, int, str, str] | None:
    match = _NO_COMMA.search(line) if re.match(r" *(?:- +)?(?:[\w+-]+: +)?[{]", line) else None
    if match is None:
        return None
    written = _NO_COMMA.sub(r"\g<before>, \g<after>", line)
    why = "inside { } a comma separates two keys"
    return written, match.start("after"), why, f"add a comma before {quoted(match['after'].strip())}"


def _unbalanced_brackets(line: str) -> tuple[str, int, str, str] | None:
    for opening, closing in ("[]", "{}"):
        missing = line.count(opening) - line.count(closing)
        if missing == 1:
            where = line.rindex(opening) if line.count(closing) == 0 else line.index(opening)
            fix = f"add {quoted(closing)} at its end"
            return f"{line.rstrip()}{closing}", where, f"the {quoted(opening)} here is not closed on its line", fix
        if missing == -1:
            where = line.rindex(closing)
            fix = f"remove the {quoted(closing)}, or add an opening bracket"
            return line[:where] + line[where + 1 :], where, f"there is an extra {quoted(closing)}", fix
    return None


def _value_and_block(line: str) -> tuple[str, int, str, str] | None:
    entry = _ENTRY.match(line)
    if entry is None or entry["value"] is None:
        return None
    why = f"{quoted(entry['key'])} has a value on its line, but also indented lines below it"
    fix = f"remove {quoted(entry['value'])}, or the indented lines"
    return line[: entry.start("value")].rstrip(), entry.start("value"), why, fix


_CHANGES: tuple[_Change, ...] = (
    _missing_space_after_dash,
    _missing_space_after_aligned_dash,
    _missing_space_after_colon,
    _missing_colon,
    _missing_quotes,
    _missing_quote,
    _apostrophe_in_quotes,
    _missing_comma,
    _unbalanced_brackets,
)
"""Repairs of one line that exclude each other. They are tried before less certain ones."""


def _missing_dash(lines: list[str], at: int) -> Iterator[_Repair]:
    """A new entry of a list without its dash: it begins with the same key as the entries above."""
    entry = _ENTRY.match(lines[at])
    if entry is None or entry["dash"]:
        return
    firsts = [match for line in lines[:at] if (match := _ENTRY.match(line)) is not None and match["dash"]]
    if firsts and firsts[-1]["key"] == entry["key"] and firsts[-1]["indent"] == entry["indent"]:
        written = f"- {lines[at].strip()}"
        why = f"the entries of the list start with `- {entry['key']}:`, but this line has no dash"
        mistake = Mistake(
            at + 1, len(entry["indent"]) + 1, why, f"use {quoted(written)}, and indent the lines below it"
        )
        yield _Repair(mistake, [*lines[:at], entry["indent"] + written, *lines[at + 1 :]])


def _wrong_indentation(lines: list[str], at: int) -> Iterator[_Repair]:
    """The line alone, or with the indented lines below it, indented as a line above."""
    own = _indent(lines[at])
    above = [number for number in range(at) if lines[number].strip() and not lines[number].lstrip().startswith("#")]
    levels = {level: number for number in above for level in _levels(lines[number])}
    below = at + 1
    while below < len(lines) and (not lines[below].strip() or _indent(lines[below]) > own):
        below += 1
    for level in sorted(levels.keys() - {own}, key=lambda level: (abs(level - own), -level)):
        spaces = plural(level, "space")
        why = f"with {plural(own, 'space')} before it, this line is not part of anything above it"
        like = f"like {_element_at(lines[levels[level]], level)} in line {levels[level] + 1}"
        fix = f"indent it by {spaces}, {like}" if level else f"remove the spaces before it: it starts {like}"
        mistake = Mistake(at + 1, own + 1, why, fix)
        alone = " " * level + lines[at].lstrip()
        yield _Repair(mistake, [*lines[:at], alone, *lines[at + 1 :]])
        moved = [_shifted(line, level - own) for line in lines[at + 1 : below]]
        yield _Repair(mistake, [*lines[:at], alone, *moved, *lines[below:]])


def _element_at(line: str, level: int) -> str:
    """The element at that column of a line: its key, or the dash of an entry."""
    rest = line[level:]
    return "the dash" if rest.startswith("-") else quoted(rest.split(":", 1)[0].strip())


def _levels(line: str) -> tuple[int, ...]:
    """The indentation of a line, and the key after its dash."""
    indent = _indent(line)
    dash = re.match(r"- +", line[indent:])
    return (indent, indent + dash.end()) if dash else (indent,)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _shifted(line: str, by: int) -> str:
    return " " * max(_indent(line) + by, 0) + line.lstrip(" ") if line.strip() else line
