"""The data tests of a project as selectors see them."""

from __future__ import annotations

from sqlstream.app.loading.selecting import SelectableTest
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.graph import DATA_TEST, data_test_id
from sqlstream.compiler.selection.select import SelectableNode


def selectable_tests(compiled: CompiledProject) -> tuple[SelectableTest, ...]:
    """Returns the data tests of all models and sources, in the order of the graph. Queries of further sinks have those
    of their model.
    """
    project = compiled.project.name
    return tuple(
        SelectableTest(
            SelectableNode(
                unique_id=data_test_id(project, model.name, test.name),
                resource_type=DATA_TEST,
                name=test.name,
                fqn=(project, *model.file.folders, model.name, test.name),
                path=test.location.path,
                tags=frozenset(test.document.config.tags),
                config={
                    "enabled": True,
                    "tags": list(test.document.config.tags),
                    "meta": dict(test.document.config.meta),
                    "severity": test.severity,
                    "on_violation": test.action,
                },
                kind=test.kind,
            ),
            model.unique_id,
            None if model.file.tests is None else model.reads[0].node_id,
        )
        for model in compiled.models.values()
        if model.file.rows_of is None
        for test in model.file.data_tests
    )
