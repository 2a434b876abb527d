"""The worked examples in the repository root compile without findings, and their YAML describes their output."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.compile.compile import CompileOutput, compile_models

ROOT = Path(__file__).parents[2]
EXAMPLES = ("activity", "cdc", "cloudtrail", "devices", "events", "logs", "nest", "transforms", "wordcount")


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> CompileOutput:
    """The examples, compiled in a copy of the project without its data."""
    folder = tmp_path_factory.mktemp("examples")
    for name in ("models", "macros", "seeds"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("project.yml", "sources.yml", "sinks.yml"):
        shutil.copy(ROOT / name, folder / name)
    return compile_models(ProjectRequest(folder, env={}))


def test_the_examples_compile_without_a_finding(examples: CompileOutput) -> None:
    """The examples compile without errors, warnings or hints; every folder in models/ is an example with that name."""
    assert examples.findings == ()
    assert sorted({model.file.folders[0] for model in examples.models}) == list(EXAMPLES)


def test_every_model_and_column_is_described(examples: CompileOutput) -> None:
    """The properties list each model's columns in order; only Spark knows those of Python models."""
    for unique_id, model in examples.loaded.compiled.models.items():
        given = examples.loaded.compiled.columns[unique_id]
        assert model.file.description, model.name
        assert all(column.description for column in model.file.columns), model.name
        if given is not None:
            assert [c.name for c in model.file.columns] == [c.name for c in given], model.name


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_explained(example: str, examples: CompileOutput) -> None:
    """The page of examples has a section for each, with its models and how to run it; the README lists it."""
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {example}\n", 1)[1].split("\n## ", 1)[0]
    assert f"sqlstream run --select {example}" in section
    names = [model.name for model in examples.models if model.file.folders[0] == example]
    assert [name for name in names if f"`{name}`" not in section] == []
    assert f"`{example}`" in (ROOT / "README.md").read_text(encoding="utf-8")
