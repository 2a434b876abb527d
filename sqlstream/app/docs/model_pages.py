"""The pages of models: SQL, columns with lineage, configuration, contract, data tests, guarantees, and when rows are
emitted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from sqlstream.app.compile.emission_text import emission_text
from sqlstream.app.loading.load import LoadAttempt
from sqlstream.compiler.analysed import analyse_models
from sqlstream.compiler.compiled import CompiledModel, CompiledProject, place_in
from sqlstream.compiler.emission import explain_emission, explain_reads
from sqlstream.compiler.flow.analysis import Analysis
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.graph import model_id, sink_id
from sqlstream.compiler.rewrite.data_tests import demanded
from sqlstream.compiler.rules.contracts import required_columns, unenforced
from sqlstream.compiler.spark_findings import is_about
from sqlstream.compiler.spark_versions import rules_apply
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.trees import direct_origins
from sqlstream.location import Location
from sqlstream.project.configuration.data_tests import DataTest
from sqlstream.project.configuration.documents import DeclaredColumn
from sqlstream.project.configuration.properties import Constraint
from sqlstream.project.formats.guarantees import guarantee_of
from sqlstream.web.site.markdown import markdown_html, markdown_words

_SHOWN_ELSEWHERE = ("tags", "meta", "contract", "access", "group")

DEFAULT_ACCESS = "protected"
"""Who may read a model that says nothing about it: every model of the project."""


class ModelPages:
    """Makes the entries of models. What needs an analysis of the whole project is computed once."""

    def __init__(self, compiled: CompiledProject, attempt: LoadAttempt, chosen: Collection[str]) -> None:
        self._compiled = compiled
        self._errors = attempt.errors
        self._chosen = chosen

    def entry(self, model: CompiledModel) -> dict[str, Any]:
        """Returns the entry of a model."""
        compiled, file = self._compiled, model.file
        return {
            "kind": "query" if model.output is not None else "view",
            "name": model.name,
            "path": file.path,
            "folders": list(file.folders),
            **described(file.description),
            "tags": list(model.config.tags),
            "meta": model.config.meta,
            "streaming": model.streaming,
            "mode": model.mode,
            "trigger": str(model.config.trigger) if model.output is not None and model.streaming else None,
            "stored": model.config.is_stored,
            "columns": self._columns(model),
            "config": _shown_config(model.config.plain()),
            "contract": _contract(compiled, model),
            "versions": _versions(compiled, model),
            "data_tests": [_data_test(test) for test in file.data_tests],
            "language": "python" if file.is_python else "sql",
            "raw": file.text,
            "compiled": model.sql,
            "compiled_path": model.compiled_path,
            "outputs": [self._output(model, index) for index in range(len(model.outputs))],
            "emission": self._emission(model) if model.output is not None else None,
            "depends_on": list(compiled.graph.parents[model.unique_id]),
        }

    def _columns(self, model: CompiledModel) -> list[dict[str, Any]] | None:
        known = self._compiled.columns.get(model.unique_id)
        if known is None:
            return declared_columns(model.file.columns) if model.file.columns else None
        described_as = {column.name.lower(): column.description for column in model.file.columns}
        origins = self._origins.get(model.unique_id, {})
        return [
            _column(column, described_as.get(column.name.lower(), ""), origins.get(column.name, ())) for column in known
        ]

    @cached_property
    def _origins(self) -> Mapping[str, Mapping[str, Collection[tuple[str, str]]]]:
        return direct_origins(self._compiled, self._chosen)

    @cached_property
    def _analyses(self) -> Mapping[str, Analysis]:
        return analyse_models(self._compiled.project, self._compiled.models)

    def _output(self, model: CompiledModel, index: int) -> dict[str, Any]:
        output = model.outputs[index]
        guarantee = guarantee_of(output.format, model.mode)
        return {
            "sink": sink_id(self._compiled.project.name, output.sink),
            "name": output.sink,
            "format": output.format,
            "place": output.sink_path or output.database_table,
            "partition_by": list(output.partition_by),
            "files_per_batch": output.files_per_batch,
            "rows": guarantee.rows,
            "means": guarantee.means,
        }

    def _emission(self, model: CompiledModel) -> str | None:
        """Returns the text of `compile --explain`; None for a query that cannot run."""
        compiled = self._compiled
        if any(is_about(compiled, error, model) for error in self._errors):
            return None

        def locate(where: Where, key: str) -> Location:
            return place_in(compiled, compiled, where, key).location

        tree = self._analyses[model.unique_id].node
        target = compiled.project.target
        reads = explain_reads(compiled, model, tree)
        return emission_text(
            model, explain_emission(model, tree, target.spark), locate, reads, is_foreseen=rules_apply(target)
        )


def _contract(compiled: CompiledProject, model: CompiledModel) -> dict[str, Any] | None:
    """Returns what others can rely on: the contract, and who may read the model and owns it. None if its YAML says
    nothing about it.
    """
    file, config = model.file, model.config
    group = next((each for each in compiled.project.groups if each.name == config.group), None)
    has_types = any(column.data_type for column in file.columns)
    says_more = config.group or file.version or file.deprecated or config.access != DEFAULT_ACCESS
    if not (model.has_contract or file.constraints or has_types or says_more):
        return None
    return {
        "enforced": model.has_contract,
        "columns": _contract_columns(model) if model.has_contract or file.constraints else [],
        "constraints": [_constraint(model, each) for each in file.constraints],
        "access": config.access,
        "group": config.group,
        "group_description": group.description if group else "",
        "owner": ", ".join([*filter(None, [group.owner.name]), *group.owner.email]) if group else "",
        **_deprecation(compiled, model),
    }


def _contract_columns(model: CompiledModel) -> list[dict[str, Any]]:
    """Returns the declared columns. `required`: no row has a null there."""
    required = required_columns(model)
    return [
        {"name": each.name, "type": each.data_type, "required": each.name.lower() in required}
        for each in model.file.columns
    ]


def _constraint(model: CompiledModel, constraint: Constraint) -> dict[str, Any]:
    """Returns a constraint, and why nothing enforces it; None if the query or the sink does."""
    reasons = unenforced(model, constraint)
    return {
        "type": constraint.type,
        "name": constraint.name,
        "columns": list(constraint.columns),
        "expression": constraint.expression,
        "to": constraint.to,
        "to_columns": list(constraint.to_columns),
        "unenforced": None if reasons is None else reasons[0],
    }


def _versions(compiled: CompiledProject, model: CompiledModel) -> list[dict[str, Any]]:
    """Returns all versions of a model with versions, in the order of their declaration."""
    if model.file.version is None:
        return []
    found = []
    for name in compiled.project.versions[model.file.version.name].files.values():
        other = compiled.models.get(model_id(compiled.project.name, name))
        if other is not None and other.file.version is not None:
            version = other.file.version
            found.append(
                {"node": other.unique_id, "v": version.v, "release": version.release, **_deprecation(compiled, other)}
            )
    return sorted(found, key=lambda each: (len(each["v"]), each["v"]))


def _deprecation(compiled: CompiledProject, model: CompiledModel) -> dict[str, Any]:
    deprecated = model.file.deprecated
    if deprecated is None or not isinstance(deprecated.value, datetime):
        return {"deprecated": None, "is_deprecated": False}
    is_past = deprecated.value <= compiled.options.run_started_at
    return {"deprecated": f"{deprecated.value:%Y-%m-%d}", "is_deprecated": is_past}


def _data_test(test: DataTest) -> dict[str, Any]:
    return {
        "name": test.name,
        "column": test.column,
        "condition": demanded(test),
        "on_violation": None if test.is_of_table else test.action,
        "severity": test.severity,
        **described(test.document.description),
    }


def described(description: str) -> dict[str, str]:
    """Returns a description as HTML and as plain words."""
    return {"description": markdown_html(description), "words": markdown_words(description)}


def declared_columns(columns: Iterable[DeclaredColumn]) -> list[dict[str, Any]]:
    """Returns declared columns, without lineage."""
    return [{"name": item.name, "type": item.data_type, **described(item.description)} for item in columns]


def _column(column: Column, description: str, origins: Collection[tuple[str, str]]) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": None if column.type is None else str(column.type),
        "watermark": None if column.event_time is None else column.event_time.delay,
        **described(description),
        "from": [list(origin) for origin in sorted(origins)],
    }


def _shown_config(config: Mapping[str, object]) -> dict[str, object]:
    """Returns the settings that say something: no empty ones, and none that the page shows elsewhere."""
    return {
        key: value for key, value in config.items() if key not in _SHOWN_ELSEWHERE and value not in (None, [], {}, ())
    }
