"""Projects with errors: each code at its location, and all of them in one run."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.project.loading import load_project
from tests.support.loading_cases import found, load, make_render

LAKE = "sinks:\n  - {name: lake, format: parquet}\n"
TABLE = "sources:\n  - name: s\n    tables:\n      - name: t\n        format: json\n"

CASES: dict[str, tuple[dict[str, str | bytes], list[str]]] = {
    "unknown key of a project": ({"project.yml": "name: a\nmodel: {}\n"}, ["project.yml:2:1 unknown-key"]),
    "unknown key of a table": ({"sources.yml": TABLE + "        shcema: a int\n"}, ["sources.yml:6:9 unknown-key"]),
    "unknown key of a watermark": (
        {"sources.yml": TABLE + "        watermark:\n          column: a\n          dely: 1 day\n"},
        ["sources.yml:6:9 missing-key", "sources.yml:8:11 unknown-key"],
    ),
    "unknown key of a repository": (
        {"project.yml": "name: a\ntargets:\n  local:\n    repositories:\n      - {url: x, user: y}\n"},
        ["project.yml:5:18 unknown-key"],
    ),
    "unknown + key": ({"project.yml": "name: a\nmodels:\n  +tag: x\n"}, ["project.yml:3:3 unknown-key"]),
    "unknown key of a model's config": (
        {"models/a.sql": "select 1", "models/a.yml": "models:\n  - name: a\n    config: {snik: lake}\n"},
        ["models/a.yml:3:14 unknown-key"],
    ),
    "unknown key of a target that is not in use": (
        {"project.yml": "name: a\ntargets:\n  local: {}\n  prod:\n    maaster: yarn\n"},
        ["project.yml:5:5 unknown-key"],
    ),
    "a number for a name": ({"project.yml": "name: 5\n"}, ["project.yml:1:7 invalid-value"]),
    "a name that is no identifier": ({"project.yml": "name: my-shop\n"}, ["project.yml:1:7 invalid-value"]),
    "missing name": ({"project.yml": "version: 1.0\n"}, ["project.yml:1:1 missing-key"]),
    "missing format of a sink": ({"sinks.yml": "sinks:\n  - name: a\n"}, ["sinks.yml:2:5 missing-key"]),
    "missing format of a table": (
        {"sources.yml": "sources:\n  - name: s\n    tables:\n      - name: t\n"},
        ["sources.yml:4:15 missing-key"],
    ),
    "a version other than 2": ({"sinks.yml": "version: 3\n"}, ["sinks.yml:1:10 invalid-value"]),
    "a list for a mapping": ({"sinks.yml": "sinks:\n  - [a]\n"}, ["sinks.yml:2:5 invalid-value"]),
    "a mapping for a list": ({"sinks.yml": "sinks:\n  lake: {format: json}\n"}, ["sinks.yml:1:1 invalid-value"]),
    "a mode that does not exist": (
        {"sources.yml": TABLE + "        mode: strem\n"},
        ["sources.yml:6:15 invalid-value"],
    ),
    "an option that is a list": (
        {"sources.yml": TABLE + "        options: {a: [1]}\n"},
        ["sources.yml:6:19 invalid-value"],
    ),
    "a bad trigger": (
        {"project.yml": "name: a\nmodels:\n  +trigger: 10 secs\n"},
        ["project.yml:3:13 invalid-value"],
    ),
    "a bad delay": (
        {"sources.yml": TABLE + "        watermark: {column: a, delay: soon}\n"},
        ["sources.yml:6:39 invalid-value"],
    ),
    "two schemas": (
        {"sources.yml": TABLE + "        schema: a int\n        columns: [{name: a, data_type: int}]\n"},
        ["sources.yml:7:9 invalid-value"],
    ),
    "a column without a type among typed ones": (
        {"sources.yml": TABLE + "        columns: [{name: a, data_type: int}, {name: b}]\n"},
        ["sources.yml:6:53 missing-key"],
    ),
    "an empty schema": ({"sources.yml": TABLE + "        schema: ' '\n"}, ["sources.yml:6:17 invalid-value"]),
    "a schema file that is missing": (
        {"sources.yml": TABLE + "        schema_file: x.ddl\n"},
        ["sources.yml:6:22 file-not-found"],
    ),
    "a schema file outside": (
        {"sources.yml": TABLE + "        schema_file: ../x.ddl\n"},
        ["sources.yml:6:22 file-outside-project"],
    ),
    "a schema file that is no JSON": (
        {"sources.yml": TABLE + "        schema_file: x.json\n", "x.json": '{\n "type": struct}'},
        ["x.json:2:10 invalid-value"],
    ),
    "a schema file that is nested without end": (
        {"sources.yml": TABLE + "        schema_file: x.json\n", "x.json": "[" * 100_000},
        ["x.json:1:1 invalid-value"],
    ),
    "a schema file of another type": (
        {"sources.yml": TABLE + "        schema_file: x.json\n", "x.json": '{"type": "integer"}'},
        ["x.json:1:1 invalid-value"],
    ),
    "two models of one name": (
        {"models/a/m.sql": "", "models/b/m.sql": ""},
        ["models/b/m.sql:1:1 duplicate-name"],
    ),
    "two models that differ in case": (
        {"models/a/M.sql": "", "models/b/m.sql": ""},
        ["models/b/m.sql:1:1 duplicate-name"],
    ),
    "a seed and a model of one name": (
        {"models/m.sql": "", "seeds/m.csv": "a\n"},
        ["seeds/m.csv:1:1 duplicate-name"],
    ),
    "two sinks of one name": ({"sinks.yml": LAKE, "sinks/b.yml": LAKE}, ["sinks/b.yml:2:12 duplicate-name"]),
    "two tables of one name": ({"sources.yml": TABLE, "sources/b.yml": TABLE}, ["sources/b.yml:4:15 duplicate-name"]),
    "two columns of one name": (
        {"sources.yml": TABLE + "        columns: [{name: a}, {name: A}]\n"},
        ["sources.yml:6:37 duplicate-name"],
    ),
    "two entries of properties for a model": (
        {"models/m.sql": "", "models/m.yml": "models:\n  - name: m\n  - name: m\n"},
        ["models/m.yml:3:11 duplicate-name"],
    ),
    "a file name that cannot be a view's": ({"models/a.b.sql": ""}, ["models/a.b.sql:1:1 invalid-value"]),
    "a Python model with a capital ending": ({"models/m.PY": ""}, ["models/m.PY:1:1 unsupported-file"]),
    "a model with a capital ending": ({"models/a/m.SQL": "x"}, ["models/a/m.SQL:1:1 unsupported-file"]),
    "seeds and macros with capital endings": (
        {"seeds/a/s.CSV": "a", "seeds/t.Csv": "a", "macros/m.SQL": "x", "macros/n.txt": "", "seeds/m.SQL": ""},
        ["macros/m.SQL:1:1 unsupported-file", "seeds/a/s.CSV:1:1 unsupported-file", "seeds/t.Csv:1:1 unsupported-file"],
    ),
    "a seed that is not UTF-8": ({"seeds/m.csv": b"a,\xff\n"}, ["seeds/m.csv:1:3 file-not-utf8"]),
    "an empty seed": ({"seeds/m.csv": ""}, ["seeds/m.csv:1:1 seed-header"]),
    "a default target that is not declared": (
        {"project.yml": "name: a\ndefault_target: prd\ntargets: {prod: {}, dev: {}}\n"},
        ["project.yml:2:17 unknown-target"],
    ),
    "no default among several targets": (
        {"project.yml": "name: a\ntargets:\n  prod: {}\n  dev: {}\n"},
        ["project.yml:1:1 unknown-target"],
    ),
    "a master and a remote": (
        {"project.yml": "name: a\ntargets:\n  local: {master: yarn, remote: 'sc://h'}\n"},
        ["project.yml:3:33 invalid-value"],
    ),
    "a remote that is no Connect server": (
        {"project.yml": "name: a\ntargets:\n  local: {remote: 'spark://h'}\n"},
        ["project.yml:3:19 invalid-value"],
    ),
    "a page that is no URL": (
        {
            "project.yml": "name: a\ntargets:\n  local: {ui_url: 'streams.example.com'}\n  prod: {ui_url: 'http://h/#/'}\n"
        },
        ["project.yml:3:19 invalid-value"],
    ),
    "a package that is no coordinate": (
        {"project.yml": "name: a\ntargets:\n  local: {packages: [kafka]}\n"},
        ["project.yml:3:22 invalid-value"],
    ),
    "another version of sqlstream": (
        {"project.yml": "name: a\nrequire_sqlstream: '>=99'\n"},
        ["project.yml:2:20 unsupported-version"],
    ),
    "a requirement that is none": (
        {"project.yml": "name: a\nrequire_sqlstream: newest\n"},
        ["project.yml:2:20 invalid-value"],
    ),
    "overrides of what is not declared": (
        {"project.yml": "name: a\ntargets:\n  local: {sources: {x.y: {}}, sinks: {lak: {}}}\n", "sinks.yml": LAKE},
        ["project.yml:3:21 unknown-source", "project.yml:3:39 unknown-sink"],
    ),
    "an override with an unknown key": (
        {
            "project.yml": "name: a\ntargets:\n  local:\n    sinks:\n      lake: {pth: x}\n",
            "sinks.yml": LAKE,
        },
        ["project.yml:5:14 unknown-key"],
    ),
    "overrides of a target that is not in use": (
        {
            "project.yml": "name: a\ntargets:\n  local: {}\n  prod:\n    sinks: {lake: {pth: x}, lak: {path: x}}\n"
            "    sources: {s.t: {mode: batsh, path: \"{{ var('b') }}\"}}\n",
            "sinks.yml": LAKE,
            "sources.yml": TABLE,
        },
        ["project.yml:5:20 unknown-key", "project.yml:5:29 unknown-sink", "project.yml:6:27 invalid-value"],
    ),
    "Jinja in overrides of a target that is not in use": (
        {
            "project.yml": 'name: a\ntargets:\n  local: {}\n  prod:\n    sinks: {lake: {options: "{{ model.name }}"}}\n'
            "    sources: {s.t: {mode: \"{{ var('b') }}\", options: \"{{ var('c') }}\"}}\n",
            "sinks.yml": LAKE,
            "sources.yml": TABLE,
        },
        ["project.yml:5:29 invalid-value"],
    ),
    "an override that renames": (
        {"project.yml": "name: a\ntargets:\n  local: {sinks: {lake: {name: sea}}}\n", "sinks.yml": LAKE},
        ["project.yml:3:26 unknown-key"],
    ),
    "Jinja that fails": (
        {"sources.yml": TABLE + "        mode: \"{{ var('x') }}\"\n"},
        ["sources.yml:6:15 missing-var"],
    ),
    "a key of what is around it": (
        {"sources.yml": TABLE + "        schema: a int\n        columns: [{name: a, path: x}]\n"},
        ["sources.yml:7:29 unknown-key"],
    ),
    "no space after a colon in braces": (
        {"sinks.yml": "sinks:\n  - {name:lake, format: parquet}\n"},
        ["sinks.yml:2:6 unknown-key"],
    ),
    "broken YAML": ({"sinks.yml": "sinks: [\n"}, ["sinks.yml:1:8 yaml-syntax"]),
}


@pytest.mark.parametrize("case", CASES)
def test_broken_project(case: str, tmp_path: Path) -> None:
    """A broken project gives exactly these findings, each with three readable lines, and no project."""
    files, expected = CASES[case]
    result = load(tmp_path, files)
    assert found(result) == expected
    assert result.project is None


def test_errors_of_all_files_come_together(tmp_path: Path) -> None:
    """An error in project.yml does not hide errors in other files, and causes no others."""
    result = load(
        tmp_path,
        {
            "project.yml": "name: a\nvers: 1\ntargets: {local: {sinks: {lake: {}}}}\n",
            "sources.yml": TABLE + "        mode: \"{{ var('m') }}\"\n        pth: x\n",
            "sinks.yml": "sinks: [}\n",
            "models/a.yml": "models:\n  - nme: a\n",
            "models/b.sql": b"\xff",
        },
    )
    assert found(result) == [
        "models/a.yml:2:5 missing-key",
        "models/a.yml:2:5 unknown-key",
        "models/b.sql:1:1 file-not-utf8",
        "project.yml:2:1 unknown-key",
        "sinks.yml:1:9 yaml-syntax",
        "sources.yml:7:9 unknown-key",
    ]


def test_requested_target_that_is_not_declared(tmp_path: Path) -> None:
    """An unknown --target suggests the nearest one, points to the declared targets, and says who set it."""
    result = load(tmp_path, {"project.yml": "name: a\ntargets:\n  prod: {}\n"}, target="prd")
    assert found(result) == ["project.yml:2:1 unknown-target"]
    assert result.findings[0].why.startswith("--target names it;")
    assert result.findings[0].fix == "did you mean `prod`?"


def test_folder_without_a_project(tmp_path: Path) -> None:
    """A folder without project.yml gives one finding, that it is no project."""
    result = load_project(tmp_path, make_render=make_render, target=None, cli_vars={})
    assert [finding.code for finding in result.findings] == ["project-not-found"]


def test_link_out_of_the_project_is_one_finding(tmp_path: Path) -> None:
    """A folder in models/ that links out of the project gives one finding, although several file kinds are searched."""
    root = tmp_path / "project"
    (tmp_path / "beside").mkdir()
    (root / "models").mkdir(parents=True)
    (root / "models/linked").symlink_to(tmp_path / "beside")
    assert found(load(root, {})) == ["models/linked:1:1 file-outside-project"]


def test_unknown_key_suggests_the_nearest(tmp_path: Path) -> None:
    """For an unknown key, the fix names the nearest key at that level, and the reason lists the keys there."""
    result = load(tmp_path, {"sources.yml": TABLE + "        shcema: a int\n"})
    assert result.findings[0].fix.startswith("did you mean `schema`")
    assert "`watermark`" in result.findings[0].why


@pytest.mark.parametrize("value", ["on", "error"])
def test_a_wrong_value_in_a_mapping_shows_its_description(tmp_path: Path, value: str) -> None:
    """A wrong value in a mapping with user-defined keys shows the description of the mapping."""
    result = load(tmp_path, {"project.yml": f"name: a\nrules:\n  unused-source: {value}\n"})

    assert found(result) == ["project.yml:3:18 invalid-value"]
    assert result.findings[0].why.startswith("`rules`: Findings to lower, by code")
    assert result.findings[0].fix == "use `warn`, `info`, `ignore` or `off`"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"sinks.yml": "sinks:\n  - {name: lake, format: json, options: '{{ model.name }}'}\n"}, "sinks.yml:2:41"),
        (
            {"sinks.yml": "sinks:\n  - {name: lake, format: json, options: {a: ['{{ model.name }}']}}\n"},
            "sinks.yml:2:42",
        ),
        ({"sinks.yml": "sinks: [{name: lake, format: json, options: 5}]\n"}, "sinks.yml:1:45"),
    ],
)
def test_a_sink_with_an_invalid_form_is_a_finding(tmp_path: Path, files: dict[str, str | bytes], expected: str) -> None:
    """A sink with an invalid form is a finding, even if its form is Jinja that is rendered later."""
    assert found(load(tmp_path, files)) == [f"{expected} invalid-value"]


def test_a_module_that_cannot_be_parsed_is_one_finding(tmp_path: Path) -> None:
    """A module that cannot be parsed gives one finding, and none about the names that project.yml takes from it."""
    files: dict[str, str | bytes] = {"project.yml": "name: a\nfunctions: [a:b]\n", "python/a.py": "def b(:\n"}

    assert found(load(tmp_path, files)) == ["python/a.py:1:1 python-import"]


@pytest.mark.parametrize(
    ("files", "fix"),
    [
        ({"sources.yml": TABLE + "        columns: [{name: a, path: x}]\n"}, "`path` is a key of a source table"),
        ({"sources.yml": "sources:\n- name: s\ntables:\n- name: t\n"}, "below `sources`"),
        ({"models/a.yml": "models: [{name: a, sink: lake}]\n"}, "below `config`"),
    ],
)
def test_a_key_at_the_wrong_level_has_a_fix(tmp_path: Path, files: dict[str, str | bytes], fix: str) -> None:
    """The finding for a key at the wrong level names the level above or below where it belongs."""
    (finding,) = load(tmp_path, files).findings[:1]

    assert (finding.code, fix in finding.fix) == ("unknown-key", True)


@pytest.mark.parametrize(
    ("files", "place", "fix"),
    [
        ({"sinks.yml": "sinks:\n  lake: {format: json}\n"}, "sinks.yml:1:1 invalid-value", "use `- name: lake`"),
        (
            {"sources.yml": TABLE + "        columns:\n          - id: int\n"},
            "sources.yml:7:13 unknown-key",
            "use {name: id, data_type: int}",
        ),
        (
            {"sources.yml": TABLE + "        watermark: at 10 minutes\n"},
            "sources.yml:6:20 invalid-value",
            "`watermark: {column: ..., delay: ...}`",
        ),
        (
            {"sources.yml": TABLE + "        columns:\n          - ts: timestamp\n"},
            "sources.yml:7:13 unknown-key",
            "use {name: ts, data_type: timestamp}",
        ),
        ({"project.yml": "name: a\nsinks: []\n"}, "project.yml:2:1 unknown-key", "in sinks.yml"),
    ],
)
def test_mistakes_of_new_users_have_a_fix(tmp_path: Path, files: dict[str, str | bytes], place: str, fix: str) -> None:
    """Typical mistakes of new users give one finding with a fix: names as keys, short columns, text for a mapping."""
    result = load(tmp_path, files)

    assert found(result) == [place]
    assert fix in result.findings[0].fix
