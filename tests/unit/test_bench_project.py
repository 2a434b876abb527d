"""The project that `make bench-compile` measures compiles without findings."""

from __future__ import annotations

from pathlib import Path

from benchmarks.generate import CHAIN, chains, edit_a_model, write_sqlstream_project
from sqlstream.app.compile.compile import compile_models
from sqlstream.app.request import ProjectRequest


def test_the_generated_project_compiles_without_findings(tmp_path: Path) -> None:
    """The generated chains of ten models end in sinks and compile without warnings; the last chain may be shorter."""
    write_sqlstream_project(tmp_path, 2 * CHAIN + 4)
    compiled = compile_models(ProjectRequest(tmp_path))
    assert compiled.findings == ()
    assert len(compiled.models) == 2 * CHAIN + 4
    assert sum(model.output is not None for model in compiled.models) == len(chains(2 * CHAIN + 4)) == 3
    assert all(compiled.loaded.compiled.columns.values())


def test_an_edit_changes_one_model(tmp_path: Path) -> None:
    """The benchmark's edit changes the SQL of one model within a chain, each time to a new text."""
    write_sqlstream_project(tmp_path, CHAIN)
    texts = {path.name: path.read_text() for path in (tmp_path / "models").rglob("*.sql")}
    for edition in range(2):
        edit_a_model(tmp_path, CHAIN, edition)
        edited = {path.name: path.read_text() for path in (tmp_path / "models").rglob("*.sql")}
        assert sum(edited[name] != texts[name] for name in texts) == 1
        assert compile_models(ProjectRequest(tmp_path)).findings == ()
        texts = edited
