"""Reads unit tests from YAML files. Each one is validated alone, so that an invalid one does not affect others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.resources import YAML_SUFFIXES, WrittenTests
from sqlstream.project.configuration.templates import UNIT_TEST_RULES, RenderYaml, render_mapping
from sqlstream.project.configuration.validate import validate_node
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.unit_tests.fixtures import FixtureReader, Rows
from sqlstream.project.unit_tests.unit_test import (
    Batch,
    BetweenBatches,
    BrokenTest,
    Expected,
    Given,
    UnitTest,
    UnitTests,
)
from sqlstream.project.unit_tests.unit_test_documents import (
    BatchDocument,
    ExpectDocument,
    GivenDocument,
    UnitTestDocument,
    UnitTestsDocument,
)
from sqlstream.project.wording import did_you_mean, given, quoted
from sqlstream.project.yaml import (
    Located,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    follow,
    locate,
    parse_yaml,
    plain,
)

TESTS_FOLDER = "tests/models"
"""The folder whose YAML files, at any depth, contain unit tests, besides those of models/."""

_INPUT = re.compile(
    r"""(?:(ref)\(\s*(['"])([^'"]+)\2\s*\)|(source)\(\s*(['"])([^'"]+)\5\s*,\s*(['"])([^'"]+)\7\s*\))"""
)

_UNIT_TESTS = re.compile(r"(?m)^unit_tests[ \t]*:")

_BRACED = re.compile(r"\{\{-?\s*(.+?)\s*-?\}\}")


def load_unit_tests(files: ProjectFiles, written: Sequence[WrittenTests], render: RenderYaml | None) -> UnitTests:
    """Returns the cases of the files of models/, which are `written`, and of those below tests/models/."""
    findings: list[Finding] = []
    cases: list[UnitTest] = []
    broken: list[BrokenTest] = []
    names: dict[tuple[str, str], Location] = {}
    findings += _misplaced_files(files)
    all_tests = (*written, *_load_test_files(files, findings))
    for node in [node for tests in all_tests for node in _test_nodes(tests, findings)]:
        problems: list[Finding] = []
        case = _read(node, render, files, problems)
        if case is not None:
            problems += _duplicate_name(case, names)
        if case is None or problems:
            broken.append(_broken_test(node, problems))
        else:
            cases.append(case)
    return UnitTests(tuple(cases), tuple(broken), tuple(findings))


def _load_test_files(files: ProjectFiles, findings: list[Finding]) -> list[WrittenTests]:
    found: list[WrittenTests] = []
    listing = files.list_files(TESTS_FOLDER, *YAML_SUFFIXES)
    findings.extend(listing.findings)
    for path in listing.paths:
        try:
            node = parse_yaml(files.read_text(path), path)
        except FindingsError as error:
            findings.extend(error.findings)
            continue
        entry = node.entry("unit_tests")
        validate_node(UnitTestsDocument, node.where(lambda item: item.key != "unit_tests"), findings)
        if entry is not None:
            found.append(WrittenTests(entry.value, entry.key_location))
    return found


def _misplaced_files(files: ProjectFiles) -> list[Finding]:
    """Files directly in tests/ or in tests/unit/ with unit tests that would be ignored."""
    near = (
        path for folder in ("tests", "tests/unit") for path in files.files_in(folder) if path.endswith(YAML_SUFFIXES)
    )
    return [
        Finding(
            "unsupported-file",
            f"the unit tests in {quoted(path)} are not read",
            f"unit tests must be in YAML files in models/ and {TESTS_FOLDER}/",
            f"move the file to `{TESTS_FOLDER}/{path.rpartition('/')[2]}`",
            Location(path, 1, 1),
        )
        for path in near
        if _has_unit_tests(files, path)
    ]


def _has_unit_tests(files: ProjectFiles, path: str) -> bool:
    try:
        return _UNIT_TESTS.search(files.read_text(path)) is not None
    except FindingsError:
        return False  # an unreadable file is not part of this project


def _test_nodes(tests: WrittenTests, findings: list[Finding]) -> tuple[YamlNode, ...]:
    if isinstance(tests.node, YamlSequence):
        return tests.node.items
    if not (isinstance(tests.node, YamlScalar) and tests.node.value is None):
        what = f"`unit_tests` must be a list, but is {given(plain(tests.node))}"
        why, fix = "each entry is a unit test", "start each entry with `- name: `"
        findings.append(Finding("invalid-value", what, why, fix, tests.location))
    return ()


def _duplicate_name(case: UnitTest, names: dict[tuple[str, str], Location]) -> list[Finding]:
    first = names.setdefault((case.model, case.name), case.location)
    if first is case.location:
        return []
    what = f"model {quoted(case.model)} has two unit tests named {quoted(case.name)}"
    why = f"the other one is at {first.path}:{first.line}"
    return [Finding("duplicate-name", what, why, "rename or remove one of them", case.location)]


def _broken_test(node: YamlNode, problems: Sequence[Finding]) -> BrokenTest:
    name, model = (follow(node, (key,)) for key in ("name", "model"))
    named = str(name.value) if isinstance(name, YamlScalar) and name.value else "(without a name)"
    of = str(model.value) if isinstance(model, YamlScalar) and model.value else None
    return BrokenTest(named, of, locate(node, ("name",)), tuple(problems))


def _read(node: YamlNode, render: RenderYaml | None, files: ProjectFiles, findings: list[Finding]) -> UnitTest | None:
    if not isinstance(node, YamlMapping):
        what = f"a unit test must be a mapping, but is {given(plain(node))}"
        findings.append(Finding("invalid-value", what, "its keys define the test", "start with `name:`", node.location))
        return None
    rendered = render_mapping(_without_braces(node), render, UNIT_TEST_RULES, findings)
    document = validate_node(UnitTestDocument, rendered, findings)
    if document is None:
        return None
    reader = FixtureReader(files, findings)
    inputs = zip(_mappings_at(rendered, "given"), document.given, strict=True)
    all_given = [_read_given(item, one, reader) for item, one in inputs]
    expect = rendered.get("expect")
    expected = _read_expected(expect, document.expect, reader) if isinstance(expect, YamlMapping) else None
    findings.extend(_contradictions(document, rendered))
    valid_given = [item for item in all_given if item is not None]
    if expected is None or len(valid_given) < len(all_given):
        return None
    return UnitTest(
        document.name,
        document.model,
        tuple(valid_given),
        expected,
        document,
        locate(rendered, ("name",)),
        {entry.key: locate(rendered, (entry.key,)) for entry in rendered.entries},
        rendered,
    )


def _without_braces(node: YamlMapping) -> YamlMapping:
    """The unit test, with inputs that are copied from the model, such as `{{ ref('x') }}`, without their braces."""

    def plain_input(item: YamlNode, path: tuple[str, ...] = ("given", "input")) -> YamlNode:
        if isinstance(item, YamlSequence):
            return replace(item, items=tuple(plain_input(each, path) for each in item.items))
        if isinstance(item, YamlMapping) and path:
            entries = (
                entry._replace(value=plain_input(entry.value, path[1:])) if entry.key == path[0] else entry
                for entry in item.entries
            )
            return replace(item, entries=tuple(entries))
        braced = _BRACED.fullmatch(str(item.value).strip()) if isinstance(item, YamlScalar) and not path else None
        if braced is not None and _INPUT.fullmatch(braced[1]):
            return YamlScalar(braced[1], braced[1], item.location)
        return item

    plain_test = plain_input(node)
    return plain_test if isinstance(plain_test, YamlMapping) else node


def _mappings_at(node: YamlMapping, key: str) -> tuple[YamlMapping, ...]:
    found = node.get(key)
    items = found.items if isinstance(found, YamlSequence) else ()
    return tuple(item for item in items if isinstance(item, YamlMapping))


def _read_given(node: YamlMapping, document: GivenDocument, reader: FixtureReader) -> Given | None:
    place = locate(node, ("input",))
    match = _INPUT.fullmatch(document.input.strip())
    if match is None:
        what = f"{quoted(document.input)} does not name an input"
        why = "an input is a source, seed or model that the model reads, named as in its SQL"
        fix = "use source('source', 'table') or ref('model')"
        reader.report(what, why, fix, place, "unit-test-input")
        return None
    kind = match[1] or match[4]
    parts = (match[3],) if match[1] else (match[6], match[8])
    entry = node.entry("batches")
    if entry is None:
        rows = reader.read(node)
        steps = None if rows is None else (Batch(rows, rows.location),)
        return Given(document.input, kind, parts, place, steps, in_batches=False)
    if any(node.get(key) is not None for key in ("rows", "fixture", "messages")):
        what = "the input has rows both in batches and outside them"
        why, fix = "only one of them could be used", "move all rows to batches"
        reader.report(what, why, fix, entry.key_location, "unit-test-batches")
        return None
    marked = [_read_step(item, reader) for item in (entry.value.items if isinstance(entry.value, YamlSequence) else ())]
    found = tuple(step for step in marked if step is not None)
    return Given(document.input, kind, parts, place, found, in_batches=True) if len(found) == len(marked) else None


def _read_step(node: YamlNode, reader: FixtureReader) -> Batch | BetweenBatches | None:
    if isinstance(node, YamlScalar):
        if node.value in tuple(BetweenBatches):
            return BetweenBatches(str(node.value))
        what = f"a batch must be a mapping with `rows`, but is {given(node.value)}"
        words = tuple(BetweenBatches)
        fix = did_you_mean(str(node.value), words) if node.value else "use `- rows: []` for a batch without rows"
        why = "only `restart` or `upgrade` can be between two batches"
        reader.report(what, why, fix, node.location, "unit-test-batches")
        return None
    if isinstance(node, YamlSequence):
        what, why = "a batch must be a mapping with `rows`, but is a list", "its keys are `rows`, `fixture` and `at`"
        reader.report(what, why, "add `- rows:` before the list", node.location, "unit-test-batches")
        return None
    document = validate_node(BatchDocument, node, reader.findings)
    if document is None:
        return None
    known = len(reader.findings)
    rows = reader.read(node)
    if len(reader.findings) > known:
        return None
    at = None if document.at is None else Located(document.at, locate(node, ("at",)))
    return Batch(rows or Rows(node.location), node.location, at, document.with_previous)


def _read_expected(node: YamlMapping, document: ExpectDocument, reader: FixtureReader) -> Expected | None:
    known = len(reader.findings)
    places = {entry.key: locate(node, (entry.key,)) for entry in node.entries}
    rows = reader.read(node)
    batches = None
    if document.batches is not None:
        batches = tuple(reader.read(item) or Rows(item.location) for item in _mappings_at(node, "batches"))
        if rows is not None:
            what = "the test expects rows both by batches and at the end"
            why = "the rows at the end are those of all batches together"
            reader.report(what, why, "remove one of them", places["batches"], "unit-test-expect")
    held = node.entry("table")
    table = None if held is None else reader.read_entry(held)
    empty = {entry.key for entry in node.entries if isinstance(entry.value, YamlScalar) and entry.value.value is None}
    if not (places.keys() - empty) & _CHECKED_KEYS and "rows" not in places:
        what, why = "the test expects nothing", "a test without expectations always passes"
        reader.report(what, why, "add `rows:` or `batches:` below `expect`", node.location, "unit-test-expect")
    if len(reader.findings) > known:
        return None
    return Expected(node.location, rows, batches, document, places, table)


_CHECKED_KEYS = {
    "rows",
    "fixture",
    "batches",
    "table",
    "late_rows_dropped",
    "watermark",
    "state_rows",
    "violations",
    "error",
}
"""The keys of an expectation that check something."""


def _contradictions(document: UnitTestDocument, node: YamlMapping) -> list[Finding]:
    if not document.equivalence and not document.reason:
        what = "`equivalence: false` needs the key `reason`"
        why = "if a stream differs from its batch, the model is usually wrong"
        fix = "explain in `reason:` why the results differ"
        return [Finding("missing-key", what, why, fix, locate(node, ("equivalence",)))]
    upgrade = document.upgrade_from
    if upgrade is not None and (upgrade.sql is None) == (upgrade.git is None):
        what = "`upgrade_from` needs one of the keys `sql` and `git`"
        why = "the older model is either written here or in a commit of the repository"
        return [Finding("missing-key", what, why, "add one of them", locate(node, ("upgrade_from",)))]
    return []
