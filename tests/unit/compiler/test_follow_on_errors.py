"""One typo gives one finding: its consequences are not reported, and the fix suggests the right name."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import Finding, FindingsError, ProjectRequest, compile_models

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": """sources:
  - name: sensors
    tables:
      - name: readings
        format: json
        path: in
        watermark: {column: ts, delay: 10 minutes}
        schema: 'ts timestamp, place string, heat double'
""",
    "sinks.yml": "sinks: [{name: out, format: json, path: out}]\n",
}


def findings(root: Path, query: str, config: str = "{{ config(sink='out') }}") -> tuple[Finding, ...]:
    """Returns the findings of a project with one model, which selects from the source `READINGS`."""
    text = f"{config}\n{query}".replace("READINGS", "{{ source('sensors', 'readings') }}")
    for name, content in {**FILES, "models/asked.sql": text}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(content)
    try:
        return compile_models(ProjectRequest(root)).findings
    except FindingsError as error:
        return error.findings


@pytest.mark.parametrize(
    ("query", "code", "fix"),
    [
        (
            "select window.start as hour, count(*) as c from READINGS group by windw(ts, '1 hour')",
            "unknown-function",
            "`window`",
        ),
        (
            "select session_window.end as e, count(*) as c from READINGS group by place, sesion_window(ts, '1 hour')",
            "unknown-function",
            "`session_window`",
        ),
        (
            "select window.start as hour, place, count(*) as c from READINGS group by window(ts, '1 hour'), plac",
            "unknown-column",
            "`place`",
        ),
        ("select place, heat, count(*) as c from READINGS group by plac", "unknown-column", "`place`"),
    ],
)
def test_a_typo_in_group_by_is_one_finding(tmp_path: Path, query: str, code: str, fix: str) -> None:
    """A typo in GROUP BY does not also report the window's fields, the missing watermark or ungrouped columns."""
    (found,) = findings(tmp_path, query)

    assert found.code == code
    assert fix in found.fix


@pytest.mark.parametrize(
    ("columns", "group", "fix"),
    [
        ("count(* as c", "group by window(ts, '1 hour')", "add `)` after its contents"),
        ("count(*) as c", "gruop by window(ts, '1 hour'), place", "did you mean `group`?"),
    ],
)
def test_a_syntax_error_gives_no_finding_about_the_watermark_hint(
    tmp_path: Path, columns: str, group: str, fix: str
) -> None:
    """A syntax error that hides FROM or GROUP BY gives no finding about the watermark hint."""
    query = f"select /*+ WATERMARK(ts, '1 minute') */ {columns} from READINGS {group}"
    (found,) = findings(tmp_path, query)

    assert (found.code, found.fix) == ("sql-syntax", fix)


@pytest.mark.parametrize(
    "key",
    ["window(ts, '1 huor')", "window(ts, '1 hour', '5 huor')", "place, session_window(ts, '1 huor')"],
)
def test_a_misspelt_time_unit_is_corrected(tmp_path: Path, key: str) -> None:
    """A misspelt time unit in the length, slide or gap of a window gives a fix with the right unit."""
    (found,) = findings(tmp_path, f"select count(*) as c from READINGS group by {key}")

    assert (found.why, found.fix) == ("`huor` is not a unit for Spark intervals", "did you mean `hour`?")


@pytest.mark.parametrize(("config", "fix"), [("{{ config(sink='out') }", "use `}}`"), ("{% set a = 1 }", "use `%}`")])
def test_a_missing_brace_is_suggested(tmp_path: Path, config: str, fix: str) -> None:
    """A Jinja tag that ends with a single `}` gives a fix with the right end."""
    (found,) = findings(tmp_path, "select 1", config)

    assert (found.code, found.fix) == ("jinja-syntax", fix)


@pytest.mark.parametrize(("limit", "codes"), [("limit 10", ["stream-limit"]), ("limit all", [])])
def test_a_limit_in_append_mode_is_a_warning(tmp_path: Path, limit: str, codes: list[str]) -> None:
    """LIMIT in append mode is a warning, because the query emits no more rows after the limit."""
    found = findings(tmp_path, f"select ts from READINGS {limit}")

    assert [item.code for item in found] == codes
    assert not any(item.is_error for item in found)
