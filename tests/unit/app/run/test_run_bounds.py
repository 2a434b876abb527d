"""A run with more endless queries than its target allows is refused before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, RunRequest, run_models
from sqlstream.app.request import Selection

PROJECT = """\
name: p
version: 1.0.0
targets:
  local: {master: 'local[1]', max_streams: 2}
"""
SOURCES = "sources:\n  - {name: s, tables: [{name: t, format: rate}]}\n"
SINKS = "sinks:\n  - {name: nowhere, format: noop}\n"


def test_too_many_streams_are_refused(tmp_path: Path) -> None:
    """Only selected queries that do not end count towards the limit."""
    (tmp_path / "models").mkdir()
    for name, text in (("project.yml", PROJECT), ("sources.yml", SOURCES), ("sinks.yml", SINKS)):
        (tmp_path / name).write_text(text)
    for name, trigger in (("a", "default"), ("b", "1 minute"), ("c", "default"), ("d", "once")):
        text = f"{{{{ config(sink='nowhere', trigger='{trigger}') }}}} select value from {{{{ source('s', 't') }}}}"
        (tmp_path / f"models/{name}.sql").write_text(text)
    request = RunRequest(ProjectRequest(tmp_path, env={"PATH": ""}))

    with pytest.raises(FindingsError) as caught:
        run_models(request, print)
    (finding,) = caught.value.findings
    assert (finding.code, finding.message) == (
        "too-many-streams",
        "3 of the selected queries run until you stop them",
    )
    assert str(finding.location) == "project.yml:4:3"

    fewer = RunRequest(request.project, Selection(exclude=("c",)))
    with pytest.raises(FindingsError) as caught:  # the next check fails: no Java is on the PATH
        run_models(fewer, print)
    assert [finding.code for finding in caught.value.findings] == ["java-missing"]
