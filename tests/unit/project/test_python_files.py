"""The names that modules of python/ define, found without importing them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.files.python_files import PythonName, find_name, load_python

MODULE = """
import os
from typing import Any
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf, udf, udtf

raise SystemExit("this module must not be imported")

def plain(rows, batch): ...

@udf("array<int>")
def typed(value): ...

@udf(returnType="int")
def named(value): ...

@udf
def bare(value): ...

@F.pandas_udf("long")
def fast(values): ...

@udtf(returnType="a int")
class Rows: ...

if os.environ:
    try:
        class Within: ...
    except ValueError:
        handled = 1

made = udf(lambda value: value, "int")
"""


@pytest.fixture
def files(tmp_path: Path) -> ProjectFiles:
    """A project with a module, a package, and a module whose names are unknown."""
    (tmp_path / "python/deep/er").mkdir(parents=True)
    (tmp_path / "python/mod.py").write_text(MODULE)
    (tmp_path / "python/deep/er/low.py").write_text("def low(): ...\n")
    (tmp_path / "python/deep/__init__.py").write_text("def top(): ...\n")
    (tmp_path / "python/stars.py").write_text("from os.path import *\n")
    return ProjectFiles(tmp_path)


@pytest.mark.parametrize(
    ("reference", "kind", "returns"),
    [
        ("mod:plain", "function", None),
        ("mod:typed", "udf", "array<int>"),
        ("mod:named", "udf", "int"),
        ("mod:bare", "udf", None),
        ("mod:fast", "pandas_udf", "long"),
        ("mod:Rows", "udtf", "a int"),
        ("mod:Within", "class", None),
        ("mod:handled", "value", None),
        ("mod:made", "value", None),
        ("mod:Any", "value", None),
        ("deep.er.low:low", "function", None),
        ("deep:top", "function", None),
        ("stars:join", "value", None),
    ],
)
def test_a_name_has_its_kind_and_literal_type(
    files: ProjectFiles, reference: str, kind: str, returns: str | None
) -> None:
    """Each name has its kind and literal type, also in nested statements; `import *` may define any name."""
    findings: list[Finding] = []

    found = find_name(load_python(files, findings), reference, Location("project.yml"))

    assert found == PythonName(reference.partition(":")[2], kind, returns)
    assert findings == []


@pytest.mark.parametrize("reference", ["mod:nothing", "nowhere:plain", "mod", "mod:", ":plain", "mod:plain:x", "a b:c"])
def test_a_missing_name_is_a_finding(files: ProjectFiles, reference: str) -> None:
    """A missing name gives a finding where it is used."""
    found = find_name(load_python(files, []), reference, Location("project.yml", 3))

    assert isinstance(found, Finding)
    assert (found.code, str(found.location)) == ("python-name", "project.yml:3:1")
