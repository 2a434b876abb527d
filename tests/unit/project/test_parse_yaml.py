"""YAML text becomes nodes with locations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.yaml import YamlScalar, locate, merge_nodes, parse_yaml, plain


def problems(text: str) -> list[str]:
    """Returns the findings of a text as `line:column code`."""
    with pytest.raises(FindingsError) as caught:
        parse_yaml(text, "f.yml")
    return [_shown(finding) for finding in caught.value.findings]


def _shown(finding: Finding) -> str:
    assert finding.location is not None
    assert "\n" not in finding.message + finding.why + finding.fix
    return f"{finding.location.line}:{finding.location.column} {finding.code}"


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9)
)
DEEP_BY_ALIAS = f"a: &a {'[' * 90}{']' * 90}\nb: {'[' * 20}*a{']' * 20}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n\tb: 1\n", ["2:1 yaml-syntax"]),
        ("a: 1\n  b: 2\n", ["2:3 yaml-syntax"]),
        ("a:\n    b: 1\n  c: 2\n", ["3:3 yaml-syntax"]),
        ("a: 'b\nc: d\n", ["1:4 yaml-syntax"]),
        ("a: [1, 2\nb: 3\n", ["1:4 yaml-syntax"]),
        ("a: b: c\n", ["1:4 yaml-syntax"]),
        ("a: 1\nb", ["2:1 yaml-syntax"]),
        ("a: @x\n", ["1:4 yaml-syntax"]),
        ('a: "\\d"\n', ["1:5 yaml-syntax"]),
        ("a: ok\nb: x\x00\n", ["2:5 yaml-syntax"]),
        ("a: !!python/object:os.system x\n", ["1:4 yaml-syntax"]),
        ("a: !!int x\n", ["1:4 yaml-syntax"]),
        ("a: !!int\n", ["1:4 yaml-syntax"]),
        ("a: !!set {x, y}\n", ["1:4 yaml-syntax"]),
        ("a: 1\n---\nb: 2\n", ["2:1 yaml-syntax"]),
        ("%YAML 3.0\n---\na: 1\n", ["1:1 yaml-syntax"]),
        ("a: *b\n", ["1:4 yaml-syntax"]),
        ("a: 1\nb: 2\na: 3\nb: 4\n", ["3:1 yaml-duplicate-key", "4:1 yaml-duplicate-key"]),
        ("b: &b {x: 1}\nc:\n  <<: *b\n  <<: *b\n", ["4:3 yaml-duplicate-key"]),
        ("? [a]\n: b\n", ["1:3 invalid-value"]),
        ("path: {{ var('x') }}\n", ["1:8 invalid-value"]),
        ("path: {{ var('x') }}/a\n", ["1:8 invalid-value"]),
        ("c:\n  <<: 5\n", ["2:3 invalid-value"]),
        ("- a\n", ["1:1 invalid-value"]),
        ("hello\n", ["1:1 invalid-value"]),
        ("[" * 100_000, ["1:101 yaml-too-large"]),
        ("- " * 100_000, ["1:201 yaml-too-large"]),
        ("{a: " * 100_000, ["1:401 yaml-too-large"]),
        (DEEP_BY_ALIAS, ["2:24 yaml-too-large"]),
        (BOMB, ["5:35 yaml-too-large"]),
        ("a: &a [*a]\n", ["1:8 yaml-too-large"]),
        ("&a {x: *a}\n", ["1:8 yaml-too-large"]),
    ],
)
def test_invalid_yaml_is_a_finding(text: str, expected: list[str]) -> None:
    """Each broken text gives its code at the location of the problem."""
    assert problems(text) == expected


@given(st.text(alphabet="ab1:-?[]{}!&*<,'\"|>#% \n\t\\", max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    """For any text, parsing gives nodes, or findings at locations that the file has."""
    try:
        plain(parse_yaml(text, "f.yml"))
    except FindingsError as error:
        lines = text.split("\n")
        for location in (finding.location for finding in error.findings):
            assert location is not None
            assert 1 <= location.column <= len(lines[location.line - 1]) + 1


def test_duplicate_key_names_both_lines() -> None:
    """The message about a duplicate key has the lines of both."""
    with pytest.raises(FindingsError, match="lines 1 and 3"):
        parse_yaml("a: 1\nb: 2\na: 3\n", "f.yml")


@pytest.mark.parametrize("text", ["", "# only a comment\n", "~\n", "---\n"])
def test_empty_document_is_an_empty_mapping(text: str) -> None:
    """An empty document is an empty mapping."""
    assert parse_yaml(text, "f.yml").entries == ()


def test_scalars_are_resolved_as_in_yaml_1_1() -> None:
    """Decimal numbers, booleans and null are resolved as in YAML 1.1; dates, times and other numbers stay text."""
    text = "[01234, 12:02, 1:30.5, 0, no, 2024-01-01, 1.5, 0b_, '5', ~, 1_000, !!str 7, !!int '8', hello, '']"
    assert plain(parse_yaml(f"a: {text}", "f.yml")) == {
        "a": ["01234", "12:02", "1:30.5", 0, False, "2024-01-01", 1.5, "0b_", "5", None, 1000, "7", 8, "hello", ""]
    }


def test_endless_digits_stay_text() -> None:
    """A number with too many digits for Python to print stays text."""
    assert plain(parse_yaml("a: " + "9" * 5000, "f.yml")) == {"a": "9" * 5000}


def test_scalar_keeps_its_text_and_place() -> None:
    """A scalar keeps its raw text, and its line and column in characters."""
    assert parse_yaml("é: 1\nb: [ü, 010]\n", "f.yml").get("é") == YamlScalar(1, "1", Location("f.yml", 1, 4))
    assert locate(parse_yaml("é: 1\nb: [ü, 010]\n", "f.yml"), ("b", 1)) == Location("f.yml", 2, 8)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_in_editors(line_end: str) -> None:
    """Three characters that end a line only for YAML do not change line numbers, as in editors."""
    text = line_end.join(("a: [x, \x85 y]", 'b: "\u2028 z"', "c: 1"))
    root = parse_yaml(text, "f.yml")
    assert [locate(root, path) for path in (("a", 1), ("b",), ("c",))] == [
        Location("f.yml", 1, 10),
        Location("f.yml", 2, 4),
        Location("f.yml", 3, 4),
    ]


def test_keys_are_text() -> None:
    """Numbers and booleans as keys become text."""
    assert plain(parse_yaml("1: a\non: b\n~: c\n", "f.yml")) == {"1": "a", "on": "b", "~": "c"}


def test_own_keys_override_merged_keys() -> None:
    """A mapping's own keys override merged ones, and of several merged ones the first wins."""
    text = "a: &a {x: 1}\nb: &b {x: 2, y: 5}\nc:\n  <<: [*a, *b]\n  z: 1\nd: {<<: *b, y: 6}\n"
    value = plain(parse_yaml(text, "f.yml"))
    assert isinstance(value, dict)
    assert value["c"] == {"x": 1, "y": 5, "z": 1}
    assert value["d"] == {"x": 2, "y": 6}


def test_locate_falls_back_to_the_nearest_parent() -> None:
    """A path that does not exist has the location of its nearest existing parent."""
    root = parse_yaml("a:\n  b:\n    c: 1\n", "f.yml")
    assert locate(root, ("a", "b", "c")) == Location("f.yml", 3, 8)
    assert locate(root, ("a", "b", "x", 4)) == Location("f.yml", 2, 3)
    assert locate(root, ("z",)) == Location("f.yml", 1, 1)


def test_merged_nodes_keep_their_own_places() -> None:
    """Mappings merge by key, and each value keeps its original location."""
    merged = merge_nodes(parse_yaml("a: {x: 1, y: 2}\n", "low.yml"), parse_yaml("a: {y: 3}\n", "high.yml"))
    assert plain(merged) == {"a": {"x": 1, "y": 3}}
    assert locate(merged, ("a", "x")).path == "low.yml"
    assert locate(merged, ("a", "y")).path == "high.yml"
