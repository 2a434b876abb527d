"""The identity of a query: everything in a project that decides whether a checkpoint belongs to it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.digest import digest
from sqlstream.compiler.rewrite.data_tests import kept_rows, without_tests
from sqlstream.compiler.rewrite.deduplicate import key_columns
from sqlstream.compiler.rules.contracts import required_columns
from sqlstream.compiler.sql.sql_text import fingerprint, python_fingerprint
from sqlstream.project.configuration.target import Target
from sqlstream.project.declarations.seeds import SeedContent
from sqlstream.project.files.python_code import NO_CODE, ModuleCode, ReachedCode, installed_versions, reach, read_code
from sqlstream.project.files.python_files import PythonFunction, PythonModule
from sqlstream.project.formats.file_options import layout_options
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.ddl import known_type
from sqlstream.state.changed_columns import NOT_NULL_TEXT
from sqlstream.state.contents import contents_of, read_seed_columns, schemas_of, seeds_of, static_paths
from sqlstream.state.ledger import FUNCTION, SINK, SOURCE, OutputColumn, QueryIdentity, SinkUse, SourceUse
from sqlstream.state.spark_settings import FindValue, declared_settings, substituted, without_credentials


def identity_of(
    compiled: CompiledProject,
    model: CompiledModel,
    uses: tuple[SourceUse, ...],
    columns: tuple[OutputColumn, ...] | None,
    *,
    stateful: bool,
    settings: Mapping[str, str],
    find_value: FindValue | None = None,
    before: QueryIdentity | None = None,
) -> QueryIdentity:
    """Returns the ledger's description of the query of `model`, with readers `uses`; `model` can be a view.
    `find_value` asks Spark for what it puts into SQL. What follows from the texts of SQL and seeds alone is taken from
    `before`, the identity in the ledger, as far as they are the same.
    """
    parts = _upstream_models(compiled, model)
    python = _PythonOf(compiled, model, parts)
    seeds = dict(seeds_of(compiled, model))
    inputs = list(contents_of(compiled, model, uses))
    spark = compiled.project.target.spark
    texts = [*python.texts, *(part.sql for part in parts if not part.file.is_python)]
    return QueryIdentity(
        query=model.query_id,
        model=model.name,
        models={part.name: _sql(part) for part in parts},
        fingerprints={part.name: _fingerprint(part, before) for part in parts}
        | _called_functions(compiled.project.functions, parts),
        sources=uses,
        sink_format=model.output.format if model.output else "",
        sink_path=(model.output.sink_path or model.output.database_table) if model.output else None,
        output_mode=model.config.output_mode,
        stateful=stateful,
        settings=settings,
        batch=not model.streaming,
        deduplicated={part.name: key_columns(part.config.deduplicate) for part in parts if part.config.deduplicate},
        kept={part.name: kept for part in parts if (kept := kept_rows(part.file.data_tests))},
        columns=columns,
        partition_by=model.output.partition_by if model.output else (),
        also=tuple(
            SinkUse(
                output.sink,
                output.format,
                output.sink_path or output.database_table,
                output.partition_by,
                output.address,
                _layout(output),
            )
            for output in model.also
        ),
        separate=model.config.separate_sinks,
        files={part.name: digest(part.file.text) for part in parts},
        inputs={part.name: part.inputs for part in parts},
        contents={name: text for name, text, _ in inputs},
        added_contents={name: added for name, _, added in inputs if added},
        schemas=dict(schemas_of(compiled, model)),
        static_paths=dict(static_paths(compiled, model)),
        sink_address=model.output.address if model.output else None,
        unique_key=model.config.unique_key,
        declared=declared_settings(spark),
        substituted=substituted(texts, spark, os.environ, find_value),
        code=python.digests,
        packages={**installed_versions(python.packages), **dict(_java_packages(compiled.project.target))},
        unfollowed=python.unfollowed,
        seeds=seeds,
        seed_columns={name: _seed_columns(name, content, parts, before) for name, content in seeds.items()},
        layout=_layout(model.output) if model.output else {},
        is_stored=model.config.is_stored,
        contract=_contract(model),
    )


def _contract(model: CompiledModel) -> dict[str, str]:
    """Returns the columns of the enforced contract of a model; none without one."""
    required = required_columns(model)
    return {
        column.name: f"{known_type(column.data_type or '')}{NOT_NULL_TEXT if column.name.lower() in required else ''}"
        for column in (model.file.columns if model.has_contract else ())
    }


def _layout(output: Output) -> dict[str, str]:
    return layout_options(format_of(output.format).options, output.options)


def _java_packages(target: Target) -> Iterator[tuple[str, str]]:
    """Yields the packages and jars of a target, which can have functions and readers, and their versions or paths."""
    jars = target.spark.get("spark.jars")
    if jars is not None:
        yield "spark.jars", without_credentials(str(jars))
    for coordinates in target.packages:
        name, _, version = coordinates.rpartition(":")
        yield name, version


def _upstream_models(compiled: CompiledProject, model: CompiledModel) -> list[CompiledModel]:
    """Returns all models upstream of `model` and `model` itself, parents first."""
    upstream = compiled.upstream(model.unique_id) | {model.unique_id}
    return [compiled.models[node] for node in compiled.graph.order if node in upstream and node in compiled.models]


def _fingerprint(model: CompiledModel, before: QueryIdentity | None) -> str:
    if model.file.is_python:
        return python_fingerprint(model.file.text, model.inputs.variables)
    known = before.fingerprints.get(model.name) if before and _has_sql(before, model) else None
    return known or fingerprint(model.sql)


def _seed_columns(
    name: str, content: SeedContent, parts: Sequence[CompiledModel], before: QueryIdentity | None
) -> tuple[str, ...]:
    is_same = before and before.seeds.get(name) == content and all(_has_sql(before, part) for part in parts)
    known = before.seed_columns.get(name) if before and is_same else None
    return known or read_seed_columns(content, parts)


def _has_sql(before: QueryIdentity, model: CompiledModel) -> bool:
    """Returns whether a model is one of SQL, with the same text as before."""
    return not model.file.is_python and before.models.get(model.name) == _sql(model)


def _sql(model: CompiledModel) -> str:
    """Returns the compiled SQL, or the code, without the comments about data tests: `kept` has those that drop rows."""
    return without_tests(model.sql, model.file.data_tests, python=model.file.is_python)


def _called_functions(functions: Sequence[PythonFunction], parts: Sequence[CompiledModel]) -> dict[str, str]:
    """Returns the digests of the project's functions whose names occur in the SQL of `parts`, by reference."""
    words = _words(part.sql for part in parts) if functions else set()
    return {function.reference: function.digest for function in functions if function.name.lower() in words}


def _words(texts: Iterable[str]) -> set[str]:
    return {word.lower() for text in texts for word in _WORD.findall(text)}


class _PythonOf:
    """The Python of a query: `digests` as in `QueryIdentity.code`, the imported `packages`, and what is `unfollowed` in
    the code that computes rows, whose string literals are `texts`. What a source reads is data, not code.
    """

    def __init__(self, compiled: CompiledProject, model: CompiledModel, parts: Sequence[CompiledModel]) -> None:
        project = compiled.project
        modules = {module.module: _reader(module) for module in project.python}
        models: dict[str, ReachedCode] = {}
        self.digests: dict[str, str] = {}
        for part in (part for part in parts if part.file.is_python):
            code = read_code(part.file.text, part.file.path, "", project.root, project.data)
            models[part.name] = reach(code, modules)
            self.digests[part.name] = digest((models[part.name].digest, *sorted(part.inputs.variables.items())))
        computing = dict(models)
        if project.functions:
            # String literals of Python models can be SQL that calls functions, and code that cannot be followed may
            # call any.
            words = _words(part.sql for part in parts) | _words(text for each in models.values() for text in each.texts)
            called = [each for each in project.functions if each.name.lower() in words]
            if any(each.unfollowed for each in models.values()):
                called = list(project.functions)
            for function in called:
                found = reach(_entry(modules, function.reference), modules)
                computing[f"{FUNCTION} {function.name}"] = found
                self.digests[f"{FUNCTION} {function.name}"] = found.digest
        others = []
        declared = [(f"{SOURCE} {table.full_name}", table.python) for table in compiled.tables_of(model.unique_id)]
        declared += [(f"{SINK} {output.sink}", output.python) for output in model.outputs]
        for name, reference in declared:
            if reference is not None:
                others.append(reach(_entry(modules, reference), modules, reads_data=True))
                self.digests[name] = f"{reference.partition(':')[2]} {others[-1].digest}"
        self.packages = {name for found in (*computing.values(), *others) for name in found.packages}
        self.texts = {text for found in computing.values() for text in found.texts}
        self.unfollowed = tuple(sorted({text for found in computing.values() for text in found.unfollowed}))


def _reader(module: PythonModule) -> Callable[[], ModuleCode]:
    # A lambda in the loop of the caller would read the last module each time.
    return lambda: module.code


def _entry(modules: Mapping[str, Callable[[], ModuleCode]], reference: str) -> ModuleCode:
    name = reference.partition(":")[0]
    return modules[name]() if name in modules else NO_CODE


_WORD = re.compile(r"\w+")
