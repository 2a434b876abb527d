"""Checks models that sqlglot cannot parse, or may parse wrongly, with Spark's own parser, if it is available."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from sqlstream.compiler.assembled import Assembled
from sqlstream.compiler.cache import CachedModel
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.digest import digest
from sqlstream.compiler.flow.analysis import Analysis
from sqlstream.compiler.rewrite.data_tests import offset_of_test, rows_where, written
from sqlstream.compiler.spark_versions import (
    ParserUnavailableError,
    ParseWithSpark,
    SparkParser,
    SyntaxRefusal,
    rules_apply,
)
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.compiler.sql.sql_text import SqlText, read_sql
from sqlstream.errors import Finding, Severity
from sqlstream.location import Place
from sqlstream.project.wording import quoted, quoted_list

SYNTAX_ERROR = "PARSE_SYNTAX_ERROR"
"""Spark's condition for text that does not match its grammar. Its other conditions explain the error."""

SUSPECT = frozenset({"misplaced-watermark", "missing-ref"})
"""Codes of findings that a misspelled keyword can cause: `form x` hides a FROM, `x gruop by a, b` adds a table `b`."""


def unread_findings(
    compiled: CompiledProject, analyses: Mapping[str, Analysis], parser: SparkParser | None, assembled: Assembled
) -> tuple[list[Finding], list[Finding]]:
    """Returns the findings about models that sqlglot cannot parse, and those of the broken models that they replace.

    SQL that Spark rejects is an error. SQL that it accepts is an info, because no rule can check it. Without Spark's
    parser, it is a warning. Doubtful SQL, which sqlglot parses, models with a data test or a constraint that it cannot
    parse, and broken models get only errors: a misspelled keyword can be the cause of their findings. One warning names
    the doubtful models that nobody could ask about.
    """
    checks_names, broken = rules_apply(compiled.project.target), assembled.broken
    unread = [node for node, known in analyses.items() if not (known.is_read or (checks_names and known.problems))]
    doubtful = [
        node
        for node, known in analyses.items()
        if known.found.is_doubtful
        and not (checks_names and any(problem.code == "sql-syntax" for problem in known.problems))
    ]
    suspects = _unread_suspects(compiled, broken)
    models = [compiled.models[node] for node in (*unread, *doubtful, *suspects)]
    answers, unavailable = _answers(models, parser, assembled.cached)
    found: dict[str, list[Finding]] = {}
    for model in models:
        node, problems = model.unique_id, answers.get(model.unique_id)
        if problems:
            found[node] = [problem.at(assembled.locate(node, problem.offset)) for problem in problems]
        elif node in unread:
            offset = analyses[node].found.unread_at
            place = Place(model.file.location) if offset is None else assembled.locate(node, offset)
            found[node] = [_not_followed(model, place, unavailable if problems is None else None)]
    unasked = [compiled.models[node] for node in doubtful if node not in answers]
    if unasked:
        found.setdefault(unasked[0].unique_id, []).append(_unasked(unasked, unavailable))
    replaced = [each for node in suspects if node in found for each in broken[node] if each.code in SUSPECT]
    return [*chain(*found.values())], replaced


def _unread_suspects(compiled: CompiledProject, broken: Mapping[str, Sequence[Finding]]) -> list[str]:
    """Returns the broken models that sqlglot cannot parse, and whose findings a misspelled keyword can cause."""
    suspects = {node for node, findings in broken.items() if any(finding.code in SUSPECT for finding in findings)}
    if not suspects:
        return []
    from sqlstream.compiler.sql.sqlglot_tree import parse_sql  # it loads sqlglot

    return [node for node, model in compiled.models.items() if node in suspects and parse_sql(model.sql).tree is None]


def _answers(
    models: Sequence[CompiledModel], parser: SparkParser | None, cached: Mapping[str, CachedModel]
) -> tuple[dict[str, tuple[SqlProblem, ...]], str]:
    """Returns the problems that Spark's parser finds, by unique id, and why some models are missing."""
    if parser is None:
        return {}, "Spark's parser is not available"
    questions = {
        model.unique_id: digest(model.name, model.sql, _expressions(model), parser.identity) for model in models
    }
    answers: dict[str, tuple[SqlProblem, ...]] = {}
    for node, question in questions.items():
        known = cached[node].results
        if known.refusals is not None and known.question == question:
            answers[node] = known.refusals
    missing = [model for model in models if model.unique_id not in answers]
    try:
        for model, problems in _ask(missing, parser) if missing else ():
            answers[model.unique_id] = problems
            cached[model.unique_id].note(question=questions[model.unique_id], refusals=problems)
    except ParserUnavailableError as error:
        return answers, str(error)
    return answers, ""


def _ask(
    models: Sequence[CompiledModel], parser: SparkParser
) -> Iterator[tuple[CompiledModel, tuple[SqlProblem, ...]]]:
    from sqlstream.compiler.sql.spark_reading import is_bounded  # it loads sqlglot

    with parser.open(len(models)) as parse:
        # deep nesting comes last, because it can end the parser's process
        for model in sorted(models, key=lambda model: not is_bounded(read_sql(model.sql))):
            yield model, _problems(model, parse)


def _expressions(model: CompiledModel) -> list[str]:
    return [sql for _, _, sql in _conditions(model)]


def _conditions(model: CompiledModel) -> Iterator[tuple[int, str, str]]:
    """Yields the queries with the conditions of data tests and constraints, each after its offset and a description."""
    for test in model.file.data_tests:
        sql = test.query if test.is_generic and test.is_of_table else rows_where("a", written(test))
        yield offset_of_test(model.sql, test), f"the data test {quoted(test.name)}", sql or ""
    for offset, constraint in model.checks:
        what = f"a check constraint of {quoted(model.name)}: {constraint.expression}"
        yield offset, what, rows_where("a", constraint.expression or "")


def _problems(model: CompiledModel, parse: ParseWithSpark) -> tuple[SqlProblem, ...]:
    refusal = parse(model.sql)
    if refusal is None:
        return tuple(_condition_problems(model, parse))
    if refusal.condition == SYNTAX_ERROR:
        from sqlstream.compiler.sql.grammar import find_typos, misspelt  # only for SQL with an error

        text = read_sql(model.sql)
        typos = find_typos(text, refusal, parse)
        found = tuple(misspelt(text.tokens[typo.index], typo.keyword) for typo in typos)
        return found or (_syntax_error(text, refusal),)
    message = f"Spark rejects the SQL of `{model.name}`"
    why = f"Spark reports: {refusal.words}" + (f" [{refusal.condition}]" if refusal.condition else "")
    return (SqlProblem(refusal.offset or 0, "sql-syntax", message, why, "change the SQL so that Spark accepts it"),)


def _condition_problems(model: CompiledModel, parse: ParseWithSpark) -> Iterator[SqlProblem]:
    """Yields the problems of the conditions of data tests and constraints."""
    for offset, what, sql in _conditions(model):
        refusal = parse(sql)
        if refusal is not None:
            why, fix = (
                f"Spark reports: {refusal.words}",
                "use a condition on the columns of the model, such as `amount >= 0`",
            )
            yield SqlProblem(offset, "sql-syntax", f"Spark cannot parse {what}", why, fix)


def _syntax_error(text: SqlText, refusal: SyntaxRefusal) -> SqlProblem:
    index, last = text.index_at(refusal.offset or 0), len(text.tokens) - 1
    place = f"at {quoted(text.tokens[index].text)}" if index <= last else "at its end"
    message, why = f"Spark cannot parse the SQL {place}", f"Spark reports: {refusal.words}"
    fix = "fix the SQL here or just before: a word, a comma or a bracket may be missing, misspelled or extra"
    return SqlProblem(at(text.tokens, min(index, last)).start, "sql-syntax", message, why, fix)


def _unasked(models: Sequence[CompiledModel], unavailable: str) -> Finding:
    """Returns the warning about doubtful SQL of `models` while Spark's parser is `unavailable`."""
    return Finding(
        "not-followed",
        f"the syntax of {quoted_list([model.name for model in models])} was not checked completely",
        f"{unavailable}; sqlstream's parser cannot tell whether Spark accepts all of it",
        "run `sqlstream compile` where there is Java, or `sqlstream compile --check`",
        models[0].file.location,
        Severity.WARNING,
    )


def _not_followed(model: CompiledModel, place: Place, unavailable: str | None) -> Finding:
    """Returns the finding about SQL that Spark accepts, or why its parser is `unavailable`."""
    if unavailable is None:
        message, severity = f"sqlstream cannot analyze the SQL of `{model.name}`", Severity.INFO
        why = (
            "Spark's parser accepts it, but sqlstream's parser does not know this syntax, so its columns and "
            "stream rules are not checked"
        )
        fix = "run `sqlstream compile --check` to check them with Spark"
    else:
        message = f"sqlstream cannot parse the SQL of `{model.name}`, and Spark's parser is not available"
        severity = Severity.WARNING
        why = f"{unavailable}; this may be a typo, or syntax that only Spark's parser knows"
        fix = "check the SQL here for a typo, or run `sqlstream compile --check` to check it with Spark"
    return Finding("not-followed", message, why, fix, place.location, severity, place.calls)
