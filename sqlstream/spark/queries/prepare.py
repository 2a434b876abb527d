"""Prepares the query of a terminal model: its session, its views, Spark's checks, its identity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import col, count_if

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.rewrite.data_tests import ERRORS
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.cluster import PARTITIONS
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, default_setting, variable_of_java
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.jvm.plans import is_stateful, processors
from sqlstream.spark.jvm.session import SparkRuntime, child_session
from sqlstream.spark.jvm.state_store import PROVIDER, ROCKSDB, checkpoint_settings
from sqlstream.spark.queries.state_signature import state_signature
from sqlstream.spark.reading.corrupt_errors import tables_with_records
from sqlstream.spark.reading.endpoints import Endpoint, endpoints_of, input_ids
from sqlstream.spark.reading.inputs import NodeReader, ViewBuilder
from sqlstream.spark.reading.python_code import register_functions
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.reading.type_text import type_text
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.late_rows import checked_late_rows
from sqlstream.spark.writing.outputs import check_output
from sqlstream.spark.writing.quarantine import check_quarantine
from sqlstream.state.checkpoints import unrestartable
from sqlstream.state.contents import earlier_names, numbers_as_text
from sqlstream.state.identity import identity_of
from sqlstream.state.ledger import InputIds, Ledger, OutputColumn, QueryIdentity, SourceUse
from sqlstream.state.readers import source_uses
from sqlstream.state.refusals import refresh_text
from sqlstream.state.runs.progress import QUARANTINED_ROWS, ROWS_OUT
from sqlstream.state.signature.signature import StateSignature
from sqlstream.state.spark_settings import (
    FROZEN_SETTINGS,
    LEGACY,
    ONLY_SPARK,
    OWN_DEFAULTS,
    RESULT_SETTINGS,
    SOURCE_EVOLUTION,
    TIME_ZONE,
    declared_settings,
)


@dataclass(frozen=True)
class PreparedQuery:
    """A terminal model that Spark has analyzed and checked; `frame` belongs to the query's session.

    `unrestartable` is the reason why the query cannot restart after a failure, None if it can. `counters` count records
    of its static tables, and in a batch model the rows of data tests. `endpoints` are the addresses to which it
    connects, and `tables` the sources that can have corrupt records. Spark keeps the rows of `cached` until `release`.
    `marked` has the rows of `frame` and those that data tests quarantine, None if no test does. `before_state` are the
    rows that enter the state, None if late ones are not kept.
    """

    compiled: CompiledProject = field(repr=False)
    model: CompiledModel
    output: Output
    frame: DataFrame
    identity: QueryIdentity
    unrestartable: str | None
    counters: tuple[Observation, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    tables: tuple[SourceTable, ...] = ()
    cached: tuple[DataFrame, ...] = ()
    ledger: Ledger | None = field(default=None, repr=False)
    secrets: Secrets = field(default=Secrets({}), repr=False)
    marked: DataFrame | None = field(default=None, repr=False)
    before_state: DataFrame | None = field(default=None, repr=False)

    @cached_property
    def input_ids(self) -> InputIds:
        """The ids of what the query reads, when it was checked."""
        return self.ask_input_ids()

    def ask_input_ids(self) -> InputIds:
        """Returns the ids of what the query reads now, as far as they are known."""
        if not self.model.streaming:
            return {}
        return input_ids(self.compiled, self.model, self.frame.sparkSession, self.secrets)

    @cached_property
    def signature(self) -> StateSignature | None:
        """What decides the content of the query's state; None without state, or if Spark does not show its plan."""
        return query_signature(self.compiled, self.model, self.frame, self.identity, self.ledger)

    def comparable_signature(self, form: int) -> StateSignature | None:
        """Returns the signature to compare with that of the ledger, in its format."""
        return query_signature(self.compiled, self.model, self.frame, self.identity, self.ledger, form)

    def release(self) -> None:
        """Frees the rows that Spark has cached for the query, which has ended."""
        for frame in self.cached:
            with suppress(*SPARK_ERRORS):  # with the JVM, its memory is free too
                frame.unpersist()


def query_signature(
    compiled: CompiledProject,
    model: CompiledModel,
    frame: DataFrame,
    identity: QueryIdentity,
    ledger: Ledger | None,
    compared_form: int | None = None,
) -> StateSignature | None:
    """Returns what decides the content of the state of the query `frame`; None without state, or if Spark does not show
    its plan. `ledger` is that from which the query resumes. With `compared_form`, the signature is in this format, to
    compare it with that of the ledger: columns that Spark finds by their position have the names that they have there,
    and columns with a wider type the type that they have there, where that makes no difference.
    """
    if not identity.stateful or not model.streaming:
        return None
    before = ledger.signature if ledger is not None else None
    if compared_form is None or ledger is None:
        return state_signature(compiled, model, frame, before=before)
    try:
        names = earlier_names(ledger.identity, identity)
    except ValueError:
        return None
    return state_signature(compiled, model, frame, compared_form, before, names, numbers_as_text(identity))


def prepare_query(
    compiled: CompiledProject, model: CompiledModel, runtime: SparkRuntime, secrets: Secrets, ledger: Ledger | None
) -> PreparedQuery:
    """Returns the query of the terminal `model`, analyzed and checked but not started.

    `ledger` belongs to the checkpoint from which the query would resume; its frozen settings apply to the session.
    Raises: FindingsError.
    """
    output = model.output
    if output is None:
        raise ValueError(f"{model.name} is not a terminal model")
    chosen = {**runtime.inherited, **compiled.project.target.spark}
    written = {name: value for name, value in checkpoint_settings(ends=model.ends).items() if name not in chosen}
    session = child_session(runtime, {**written, **frozen_settings(model, runtime, ledger)})
    register_functions(session, compiled.project.functions)
    # Spark counts nothing in a continuous query
    counts = not model.config.trigger.facts.has_epochs
    readers = Readers(session, secrets, compiled.project.root, counts=counts, caches=True)
    uses = source_uses(compiled, model, ledger)
    _check_secrets(compiled, model, readers)
    frame, marked = _build_frame(compiled, model, readers, uses)
    stateful = is_stateful(frame, partial(_may_keep_state, compiled, model))
    is_free = ledger is None and PROVIDER not in chosen  # neither a checkpoint nor the target decides
    has_choice = stateful and frame.isStreaming and session.conf.get(PROVIDER) != ROCKSDB
    if has_choice and (_needs_rocksdb(frame) or (is_free and _grows(compiled, model))):
        session.conf.set(PROVIDER, ROCKSDB)
    settings = dict(_settings(session))
    columns = columns_of(frame)
    find_value = partial(_substituted_value, session)
    found = identity_of(compiled, model, uses, columns, stateful=stateful, settings=settings, find_value=find_value)
    # settings that can change results: those of the target, and those from elsewhere such as a spark-defaults.conf
    given, always = found.declared or {}, (*FROZEN_SETTINGS, TIME_ZONE, SOURCE_EVOLUTION)
    elsewhere = declared_settings(runtime.inherited, always)
    declared, inherited = _without_defaults(session, given), _without_defaults(session, elsewhere)
    kept = {**declared, **inherited}
    defaults = {name: value for name, value in {**elsewhere, **given}.items() if name not in kept}
    identity = replace(found, declared=declared, defaults=defaults, inherited=inherited)
    return PreparedQuery(
        compiled,
        model,
        output,
        frame,
        identity,
        unrestartable(compiled, model),
        tuple(readers.counters),
        endpoints_of(compiled, model, secrets),
        tables_with_records(compiled, model.unique_id),
        tuple(readers.cached),
        ledger,
        secrets,
        None if marked is None else _with_counts_of_both(marked),
        checked_late_rows(compiled, model, frame, secrets) if model.keeps_late_rows else None,
    )


def _may_keep_state(compiled: CompiledProject, model: CompiledModel) -> bool:
    """Returns whether the query of `model` keeps state, according to the compiler; True if it cannot follow the SQL."""
    from sqlstream.compiler.trees import is_followed, keeps_state  # loads sqlglot, which Spark's plan makes unnecessary

    return keeps_state(compiled, model) or not is_followed(compiled, model)


def _settings(session: SparkSession) -> Iterator[tuple[str, str]]:
    """Yields the settings that a ledger always has, also those with Spark's default."""
    for name in (*FROZEN_SETTINGS, TIME_ZONE, SOURCE_EVOLUTION, *RESULT_SETTINGS):
        with suppress(*SPARK_ERRORS):  # of this name there is none in this Spark
            value = session.conf.get(name)
            if value is not None:
                yield name, value


def _without_defaults(session: SparkSession, declared: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of the target that do not have Spark's default; all of them if Spark does not tell."""
    return {
        name: value
        for name, value in declared.items()
        # early ledgers have the settings of earlier releases, also with their defaults
        if name.startswith(LEGACY) or value.lower() != (OWN_DEFAULTS.get(name) or _default(session, name) or "").lower()
    }


def _substituted_value(session: SparkSession, kind: str, name: str) -> str:
    """Returns what Spark puts into SQL for a name: nothing for an unknown setting, and the text itself for others."""
    if kind:
        find = partial(variable_of_java, session, kind, name)
        return call_internal(session, "variables of the JVM", find, lambda: ONLY_SPARK) or f"${{{kind}:{name}}}"
    with suppress(*SPARK_ERRORS):
        return session.conf.get(name, "") or ""
    return ""


def columns_of(frame: DataFrame) -> tuple[OutputColumn, ...]:
    """Returns the columns of `frame`, as a ledger has them."""
    return tuple(OutputColumn(field.name, type_text(field.dataType)) for field in frame.schema)


def _build_frame(
    compiled: CompiledProject, model: CompiledModel, readers: Readers, uses: tuple[SourceUse, ...]
) -> tuple[DataFrame, DataFrame | None]:
    names_sources = readers.session.conf.get(SOURCE_EVOLUTION) == "true"
    frame, marked = ViewBuilder(NodeReader(compiled, readers), uses, names_sources).build_query(model)
    for output in model.outputs:
        check_output(model, output, frame, readers.secrets)
    if marked is not None:
        check_quarantine(compiled, model, marked, readers.secrets)
    return frame, marked


def _needs_rocksdb(frame: DataFrame) -> bool:
    """Returns whether the query has processors that no other state store supports."""
    return any(processor.in_rocksdb for processor in processors(frame))


def _grows(compiled: CompiledProject, model: CompiledModel) -> bool:
    """Returns whether the state of a new query is likely to outgrow Java's heap."""
    from sqlstream.compiler.trees import state_never_shrinks  # loads sqlglot

    return state_never_shrinks(compiled, model)


def _with_counts_of_both(marked: DataFrame) -> DataFrame:
    is_good = col(ERRORS).isNull()
    return marked.observe(ROWS_OUT, count_if(is_good).alias("rows"), count_if(~is_good).alias(QUARANTINED_ROWS))


def frozen_settings(model: CompiledModel, runtime: SparkRuntime, ledger: Ledger | None) -> dict[str, str]:
    """Returns the settings that the checkpoint of `ledger` fixes, or those of a new checkpoint (None). Raises:
    FindingsError if this Spark cannot read the checkpoint.
    """
    if ledger is None:
        evolution = {SOURCE_EVOLUTION: "true" if runtime.names_sources else "false"}
        partitions = runtime.cluster.partitions() if runtime.cluster and model.streaming else None
        return evolution if partitions is None else {**evolution, PARTITIONS: str(partitions)}
    if ledger.identity.settings.get(SOURCE_EVOLUTION) == "true" and not runtime.names_sources:
        raise FindingsError([_older_spark(model, runtime, ledger)])
    # without a value in the ledger, the checkpoint has Spark's default, also if the target sets another value now
    kept = {name: ledger.identity.settings.get(name) or _default(runtime.session, name) for name in FROZEN_SETTINGS}
    known = {name: value for name, value in kept.items() if value is not None}
    return {SOURCE_EVOLUTION: ledger.identity.settings.get(SOURCE_EVOLUTION, "false"), **known}


def _default(session: SparkSession, name: str) -> str | None:
    """Returns Spark's default of a setting, None if Spark does not tell."""
    return call_internal(session, "default settings", partial(default_setting, session, name), lambda: None)


def _older_spark(model: CompiledModel, runtime: SparkRuntime, ledger: Ledger) -> Finding:
    return Finding(
        "unsupported-version",
        f"the checkpoint of `{model.name}` is from Spark {ledger.spark_version}, and this is Spark {runtime.version}",
        "it identifies its sources by name, which Spark supports only since 4.3",
        f"install pyspark {ledger.spark_version} again; or {refresh_text(model.name)}",
        model.file.location,
    )


def _check_secrets(compiled: CompiledProject, model: CompiledModel, readers: Readers) -> None:
    missing = [
        found for each in compiled.outputs_of(model) for found in readers.secrets.missing(each.options, each.location)
    ]
    for table in compiled.tables_of(model.unique_id):
        missing += readers.missing_secrets(table)
    if missing:
        raise FindingsError(missing)
