"""What each changed query of a plan breaks: its contract, and sinks, models and exposures downstream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlstream.app.plan.compiled_identity import columns_without_spark
from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.graph import stored_id
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import Exposure
from sqlstream.project.wording import quoted_list
from sqlstream.state.changed_columns import Break, BreakKind, ColumnDifference, column_differences
from sqlstream.state.checkpoints import FilesOf, read_checkpoint
from sqlstream.state.layout import query_root
from sqlstream.state.verdicts import QueryVerdict, Verdict

DifferencesOf = Callable[[CompiledModel], tuple[ColumnDifference, ...]]
"""Returns how the output columns of a query differ from those of its ledger; none without a ledger."""

STARTS_OVER = (Verdict.REFUSE, Verdict.REBUILD, Verdict.UNKNOWN)
"""Verdicts on queries that the usual way out, a full refresh, starts over."""


def stored_differences(compiled: CompiledProject, files_of: FilesOf, storage: str) -> DifferencesOf:
    """Returns the function that compares a query with its ledger in `storage`, as far as the compiler knows it."""

    def find(model: CompiledModel) -> tuple[ColumnDifference, ...]:
        try:
            state = read_checkpoint(files_of, query_root(storage, model.query_id, model.config.checkpoint))
        except OSError:
            return ()  # what cannot be read is not in the plan
        old = state.ledger.identity if state.ledger is not None else None
        new = columns_without_spark(compiled, model, old)
        if old is None or old.columns is None or new is None:
            return ()
        return column_differences(old.columns, new)

    return find


def with_breaks(
    compiled: CompiledProject, verdicts: Sequence[QueryVerdict], differences_of: DifferencesOf
) -> tuple[QueryVerdict, ...]:
    """Returns the verdicts with what each breaks. `differences_of` is for queries that the plan does not have."""
    models = {model.name: model for model in compiled.models.values()}
    known = {verdict.model: verdict.differences for verdict in verdicts}

    def find(model: CompiledModel) -> tuple[ColumnDifference, ...]:
        return known[model.name] if model.name in known else differences_of(model)

    return tuple(
        replace(verdict, breaks=tuple(_Query(compiled, models[verdict.model], verdict, find).breaks()))
        if verdict.version and verdict.model in models and not verdict.is_parallel
        else verdict
        for verdict in verdicts
    )


@dataclass(frozen=True)
class _Query:
    """A planned query, with everything downstream."""

    compiled: CompiledProject
    model: CompiledModel
    verdict: QueryVerdict
    find: DifferencesOf

    @cached_property
    def changed(self) -> tuple[ColumnDifference, ...]:
        return _broken(self.verdict.differences)

    @property
    def starts_over(self) -> bool:
        return self.verdict.verdict in STARTS_OVER

    def breaks(self) -> Iterator[Break]:
        for change in self.verdict.contract_breaks:
            yield Break(BreakKind.CONTRACT, self.model.name, f"{change}{self._read_by}")
        if not self.changed and not self.starts_over:
            return
        for output in self.model.outputs:
            yield Break(BreakKind.SINK, output.sink, self._of_sink(output))
        readers = self._readers()
        for node, (subject, what) in readers.items():
            yield Break(BreakKind.MODEL, self.compiled.models[node].name, f"{subject} {what}")
        yield from self._exposures({node: (_CLAUSES[subject], what) for node, (subject, what) in readers.items()})

    @cached_property
    def _read_by(self) -> str:
        """The models and exposures downstream, as the end of a sentence."""
        graph, compiled = self.compiled.graph, self.compiled
        below = [
            node for node in graph.order if node in graph.descendants(self.model.unique_id) - {self.model.unique_id}
        ]
        models = [compiled.models[node].name for node in below if node in compiled.models]
        exposures = [compiled.exposures[node] for node in below if node in compiled.exposures]
        owners = [f"`{each.name}`{f' of {_owner(each)}' if _owner(each) else ''}" for each in exposures]
        texts = [quoted_list(models, most=20)] if models else []
        texts += [f"{'exposure' if len(owners) == 1 else 'exposures'} {', '.join(owners)}"] if owners else []
        return f"; read by {' and '.join(texts)}" if texts else "; nothing in the project reads it"

    def _of_sink(self, output: Output) -> str:
        reasons = [_texts(self.changed)] if self.changed else []
        if self.starts_over:
            has_versions = format_of(output.format).keeps_output or format_of(output.format).is_embedded
            again = "its rows to a new version of the output" if has_versions else "all rows to it again"
            reasons.append(f"a full refresh writes {again}")
        return "; ".join(reasons)

    def _readers(self) -> Mapping[str, tuple[str, str]]:
        """Returns why each query downstream may break, by its unique id, in the order of the graph."""
        found: dict[str, tuple[str, str]] = {}
        below = self.compiled.graph.descendants(self.model.unique_id)
        for node in (node for node in self.compiled.graph.order if node in below and node in self.compiled.models):
            model = self.compiled.models[node]
            if model.output is None:
                continue
            own = _broken(self.find(model))
            if own:
                found[node] = "its", _texts(own)
            elif stored_id(self.compiled.project.name, self.model.name) in self.compiled.upstream(node):
                found[node] = "it", self._of_stored_reader()
        return found

    def _of_stored_reader(self) -> str:
        """Returns why a query that reads the stored output may break, although its own columns are the same."""
        if self.starts_over:
            return f"reads the stored output of `{self.model.name}`, and must start over after a full refresh of it"
        return f"reads the stored output of `{self.model.name}`, whose {_texts(self.changed)}"

    def _exposures(self, readers: Mapping[str, tuple[str, str]]) -> Iterator[Break]:
        own = ("whose", _texts(self.changed)) if self.changed else ("which", "starts over with a full refresh")
        reasons = {self.model.unique_id: own, **readers}
        for node, exposure in self.compiled.exposures.items():
            read = [parent for parent in self.compiled.graph.parents[node] if parent in reasons]
            if read:
                shown = [f"`{self.compiled.models[parent].name}`, {' '.join(reasons[parent])}" for parent in read]
                yield Break(BreakKind.EXPOSURE, exposure.name, f"it reads {'; and '.join(shown)}", _owner(exposure))


_CLAUSES = {"its": "whose", "it": "which"}
"""The relative pronouns that begin a clause about a model, by the words that begin a sentence about it."""


def _broken(differences: Sequence[ColumnDifference]) -> tuple[ColumnDifference, ...]:
    return tuple(each for each in differences if each.breaks_readers)


def _texts(differences: Sequence[ColumnDifference]) -> str:
    return ", ".join(each.text for each in differences)


def _owner(exposure: Exposure) -> str | None:
    return exposure.owner.name or ", ".join(exposure.owner.email) or None
