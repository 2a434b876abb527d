"""The unique ids of a project's nodes, as in dbt, and the names of their temp views."""

from __future__ import annotations

from sqlstream.compiler.sql.names import view_name
from sqlstream.project.values import SourceTable

SOURCE, SEED, MODEL, EXPOSURE, SINK, STORED = "source", "seed", "model", "exposure", "sink", "stored"
"""The kinds of nodes and of sinks, the first part of each id. A stored output is no node of the graph: queries read it
instead of its model.
"""


UNIT_TEST = "unit_test"
"""The kind of unit tests, which can be selected, and are no nodes of the graph."""


def source_id(project: str, table: SourceTable) -> str:
    """Returns `source.<project>.<source>.<table>`. `project` is the name of the project."""
    return f"{SOURCE}.{project}.{table.full_name}"


def seed_id(project: str, name: str) -> str:
    """Returns `seed.<project>.<name>`."""
    return f"{SEED}.{project}.{name}"


def model_id(project: str, name: str) -> str:
    """Returns `model.<project>.<name>`."""
    return f"{MODEL}.{project}.{name}"


def sink_id(project: str, name: str) -> str:
    """Returns `sink.<project>.<name>`."""
    return f"{SINK}.{project}.{name}"


def exposure_id(project: str, name: str) -> str:
    """Returns `exposure.<project>.<name>`."""
    return f"{EXPOSURE}.{project}.{name}"


def stored_id(project: str, name: str) -> str:
    """Returns `stored.<project>.<name>`, the stored output of the model `name`."""
    return f"{STORED}.{project}.{name}"


def doc_id(project: str, name: str) -> str:
    """Returns `doc.<project>.<name>`, a docs block."""
    return f"doc.{project}.{name}"


def kind_of(node_id: str) -> str:
    """Returns the kind of a node: `SOURCE`, `SEED`, `MODEL`, `EXPOSURE`, `SINK` or `STORED`."""
    return node_id.split(".", 1)[0]


def view_of(node_id: str) -> str:
    """Returns the unquoted name of the temp view of a node."""
    kind, _, *parts = node_id.split(".")
    return view_name(parts) if kind == SOURCE else parts[-1]
