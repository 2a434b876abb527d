"""The queries that an option such as `--parallel` names by selectors."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.app.loading.load import Loaded
from sqlstream.app.loading.selecting import select
from sqlstream.app.request import Selection
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import UsageError
from sqlstream.project.nearest import did_you_mean


def named_queries(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    selection: Selection,
    option: str,
    selectors: Sequence[str],
    command: str = "run",
) -> tuple[str, ...]:
    """Returns the names of those `models` of a command that the `selectors` of an option select.

    Raises: FindingsError for a selector that is invalid or matches nothing; UsageError if it selects none of `models`,
    unless these are nodes to retry, which may be only some of those that the option was meant for.
    """
    named: list[str] = []
    for selector in selectors:
        chosen, _ = select(loaded.compiled, Selection((selector,), state=selection.state))
        found = [model.name for model in models if model.unique_id in chosen]
        if not found and selection.nodes is None:
            problem = f"{option} {selector} selects no query of this {command}"
            raise UsageError(f"{problem}; {did_you_mean(selector, [model.name for model in models])}")
        named += found
    return tuple(named)
