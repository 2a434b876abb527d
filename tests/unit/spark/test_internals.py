"""Few modules use Spark's internals, and a run uses them only with a public fallback."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import sqlstream

SPARK = Path(sqlstream.__file__).parent / "spark"

JVM_FIELDS = re.compile(r"\b_(?:jvm|jsc|jsq|jdf|jsparkSession|jreader|jwrite)\b")
"""PySpark's private fields."""

HOMES = {
    "jvm/cluster.py",
    "jvm/core_time.py",
    "jvm/file_sink.py",
    "jvm/fresh_files.py",
    "jvm/gateway.py",
    "jvm/launch.py",
    "jvm/session.py",
    "storage/hadoop.py",
}
FOR_UNIT_TESTS = {"reading/memory_streams.py", "reading/static_stream.py"}
"""Modules that only `sqlstream test` uses; these internals have no public fallback."""

GUARDED = frozenset(
    {
        *("set_active_session", "analyzed", "check_file_schema", "check_format", "check_partitions", "check_streaming"),
        *(
            "check_types",
            "command_in",
            "infer_csv_schema",
            "add_listener",
            "mark_terminated",
            "phase_of",
            "unfinished_batch",
        ),
    }
)
"""Internals in the gateway, which Spark can move."""


def modules() -> list[str]:
    """Returns the modules of the package that uses Spark."""
    return sorted(path.relative_to(SPARK).as_posix() for path in SPARK.rglob("*.py"))


def test_few_modules_use_jvm_objects() -> None:
    """Only the listed modules use PySpark's JVM objects."""
    found = {name for name in modules() if JVM_FIELDS.search((SPARK / name).read_text(encoding="utf-8"))}

    assert found <= HOMES | FOR_UNIT_TESTS


@pytest.mark.parametrize("name", sorted(set(modules()) - FOR_UNIT_TESTS - {"jvm/internals.py"}))
def test_internals_have_a_public_fallback(name: str) -> None:
    """A module that imports them from the gateway also imports `call_internal`."""
    imports = [node for node in ast.walk(ast.parse((SPARK / name).read_text())) if isinstance(node, ast.ImportFrom)]
    taken = {(node.module, alias.name) for node in imports for alias in node.names}

    if any(module == "sqlstream.spark.jvm.gateway" and item in GUARDED for module, item in taken):
        assert ("sqlstream.spark.jvm.internals", "call_internal") in taken
