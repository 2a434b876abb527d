"""The unique ids of a project's nodes, as dbt writes them, and the name of the temp view that each node becomes."""

from __future__ import annotations

from sqlstream.compiler.sql.names import view_name
from sqlstream.project.values import SourceTable

SOURCE, SEED, MODEL = "source", "seed", "model"
"""The kinds of nodes, which their ids start with."""


def source_id(project: str, table: SourceTable) -> str:
    """Returns `source.<project>.<source>.<table>`; `project` is the project's name, here and below."""
    return f"{SOURCE}.{project}.{table.full_name}"


def seed_id(project: str, name: str) -> str:
    """Returns `seed.<project>.<name>`."""
    return f"{SEED}.{project}.{name}"


def model_id(project: str, name: str) -> str:
    """Returns `model.<project>.<name>`."""
    return f"{MODEL}.{project}.{name}"


def kind_of(node_id: str) -> str:
    """Returns the kind of a node: one of `SOURCE`, `SEED` and `MODEL`."""
    return node_id.split(".", 1)[0]


def view_of(node_id: str) -> str:
    """Returns the plain (unquoted) name of the temp view of a node."""
    kind, _, *parts = node_id.split(".")
    return view_name(parts) if kind == SOURCE else parts[-1]
