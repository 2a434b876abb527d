"""Renders the generic tests of a project, and finds those that only filter rows, so that queries can check them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlstream.compiler.render.rendered import RenderedModel
from sqlstream.compiler.rendering import CachedRenderer
from sqlstream.compiler.rewrite.bare_names import Spellings, bare_name_problems, bare_names
from sqlstream.compiler.sql.sql_text import read_sql, view_name
from sqlstream.compiler.sql.statement import command_problem, command_word
from sqlstream.compiler.sql.tokens import SqlTokenError
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.project.configuration.generic_tests import COLUMN, MODEL
from sqlstream.project.configuration.reference_calls import ReferenceCall, read_call
from sqlstream.project.values import ModelFile, Project

if TYPE_CHECKING:
    from sqlstream.project.configuration.data_tests import DataTest  # few projects need its documents

_CLAUSES: Mapping[str, str] = {
    "with_": "WITH", "distinct": "DISTINCT", "group": "GROUP BY", "having": "HAVING", "qualify": "QUALIFY",
    "order": "ORDER BY", "sort": "SORT BY", "limit": "LIMIT", "offset": "OFFSET", "joins": "JOIN",
    "laterals": "LATERAL VIEW", "windows": "WINDOW",
}  # fmt: skip
"""The clauses of a query that is more than a filter, by their names in sqlglot."""

_FILTER = frozenset({"expressions", "from_", "where"})


def render_generic_tests(project: Project, renderer: CachedRenderer) -> tuple[Project, list[Finding]]:
    """Returns the project with the queries of all its generic tests, and the findings about them.

    Raises nothing: a test that cannot be rendered stays as it is. `renderer` has no findings about macros.
    """
    findings: list[Finding] = []
    models = []
    for file in project.models:
        tests = tuple(
            _rendered(file, test, renderer, findings) if test.is_generic else test for test in file.data_tests
        )
        enabled = tuple(test for test in tests if test.document.config.enabled)
        models.append(replace(file, data_tests=enabled) if enabled != file.data_tests else file)
    return replace(project, models=tuple(models)), findings


def _rendered(file: ModelFile, test: DataTest, renderer: CachedRenderer, findings: list[Finding]) -> DataTest:
    call = _call_file(file, test)
    try:
        rendered = renderer.render(call).model
    except FindingsError as error:
        findings += [_at_test(found, call.path, test) for found in error.findings]
        return test
    findings += [_at_test(found, call.path, test) for found in rendered.findings]
    query = rendered.sql.strip().removesuffix(";").rstrip()
    try:
        word = command_word(read_sql(query))
        if word is not None:
            findings.append(command_problem(test.kind, word.key).at(Place(test.location)))
            return test
        fails_if, not_plain = _condition(query, file.name)
    except SqlTokenError as error:
        why = "its query cannot be read to its end"
        findings.append(Finding("sql-syntax", f"`{test.kind}`: {error.message}", why, "close it", test.location))
        return test
    if not query:
        why = "its query returns the rows that fail"
        fix = "write a SELECT into the {% test %} block"
        findings.append(Finding("data-test", f"`{test.kind}` renders no SQL", why, fix, test.location))
        return test
    test = _with_defaults(test, rendered, findings)
    if fails_if is None and test.action != "warn":
        findings.append(_not_in_streams(test, not_plain))
    references = tuple(ReferenceCall(each.kind, each.parts) for each in rendered.references)
    return replace(test, query=query, fails_if=fails_if, not_plain=not_plain, references=references)


def unknown_tables(file: ModelFile, known: Spellings) -> list[Finding]:
    """Returns the findings about tables that generic tests of a model read without ref() or source()."""
    findings = []
    for test in file.data_tests if file.rows_of is None else ():
        if test.is_generic and test.query is not None:
            views = [file.name, *(view_name(each.parts) for each in test.references)]
            problems = bare_name_problems(bare_names(read_sql(test.query), views), test.kind, known)
            findings += [problem.at(Place(test.location)) for problem in problems]
    return findings


def _call_file(file: ModelFile, test: DataTest) -> ModelFile:
    """Returns a template that calls the macro of a test, in the way of a model: so the cache remembers its SQL."""
    arguments: dict[str, Any] = test.document.arguments  # type: ignore[attr-defined]  # it is generic
    named = {COLUMN: test.column} if test.column is not None else {}
    values = [f"{MODEL}=this", *(f"{name}={_literal(value)}" for name, value in {**named, **arguments}.items())]
    return ModelFile(
        name=file.name,
        path=f"{test.location.path}#{file.name}.{test.name}",
        text=f"{{{{ test_{test.kind}({', '.join(values)}) }}}}",
        folders=file.folders,
        description=file.description,
        columns=(),
        configs=(),
    )


def _literal(value: object) -> str:
    """Returns a value of YAML as an expression of Jinja; text that calls ref() or source() is this call, as in dbt."""
    if isinstance(value, str) and read_call(value) is not None:
        return value.strip().removeprefix("{{").removesuffix("}}").strip()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(str(key))}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return f"('{value}'|float)"  # Jinja has no literal for it
    return str(value) if isinstance(value, int | float) else json.dumps(str(value), ensure_ascii=False)


def _at_test(found: Finding, path: str, test: DataTest) -> Finding:
    """Returns a finding about the call of a test at the test in YAML; one in its macro names the test as caller."""
    calls = tuple(test.location if place.path == path else place for place in found.calls)
    location = test.location if found.location is None or found.location.path == path else found.location
    return replace(found, location=location, calls=calls)


def _with_defaults(test: DataTest, rendered: RenderedModel, findings: list[Finding]) -> DataTest:
    """Returns a test with what its block configures with config() and YAML does not."""
    if not rendered.config:
        return test
    from pydantic import ValidationError

    from sqlstream.project.configuration.data_tests import DataTestConfig
    from sqlstream.project.configuration.validate import to_finding

    document = test.document
    given = {name: getattr(document.config, name) for name in document.config.model_fields_set}
    try:
        config = DataTestConfig.model_validate({**{key: each.value for key, each in rendered.config.items()}, **given})
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            found = to_finding(DataTestConfig, problem, lambda _path, _key: test.location)
            findings.append(replace(found, message=f"config() of the data test `{test.kind}`: {found.message}"))
        return test
    return replace(test, document=document.model_copy(update={"config": config}))


def _not_in_streams(test: DataTest, not_plain: str) -> Finding:
    return Finding(
        "data-test",
        f"`{test.kind}` cannot have on_violation: {test.action}",
        f"its query {not_plain}, so only `sqlstream test --data` checks it",
        "remove on_violation, or write the test as `select * from {{ model }} where ...`, a condition on one row",
        test.action_location or test.location,
    )


def _condition(query: str, model: str) -> tuple[str | None, str]:
    """Returns the condition with which a query filters the rows of `model`, or None and why it does more than that.

    Raises: SqlTokenError.
    """
    text = read_sql(query)
    if text.keys["SELECT"] > 1:
        return None, "has a subquery or a second SELECT"
    reason = next(_more_than_a_filter(query, model), None)
    if reason is not None:
        return None, reason
    where = next(token for token in text.tokens if token.key == "WHERE")
    return query[where.end :].strip(), ""


def _more_than_a_filter(query: str, model: str) -> Iterator[str]:
    from sqlglot import exp

    from sqlstream.compiler.sql.sqlglot_tree import parse_sql

    parsed = parse_sql(query)
    tree = parsed.tree
    if not isinstance(tree, exp.Select) or parsed.is_doubtful or parsed.stages or parsed.watermarks:
        yield "is not a plain SELECT"
        return
    used = {key for key, value in tree.args.items() if value}
    yield from (f"has {clause}" for key, clause in _CLAUSES.items() if key in used)
    if used != _FILTER:
        yield "has no WHERE" if used < _FILTER else "is not a plain SELECT"
        return
    table = tree.args["from_"].this
    if not isinstance(table, exp.Table) or {key for key, value in table.args.items() if value} - {"this", "alias"}:
        yield "does not read the model alone"
        return
    if table.name.lower() != model.lower():
        yield f"reads `{table.name}` and not the model"
    if any(not isinstance(item, exp.Star | exp.Column | exp.Literal) for item in tree.expressions):
        yield "computes columns"
    names = {table.name.lower(), table.alias.lower()}
    if any(column.table.lower() in names for column in tree.args["where"].find_all(exp.Column) if column.table):
        yield "names the table in its condition"
