"""What becomes of the models that sqlglot cannot read: Spark's own parser decides, where it can be asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlstream.compiler.cache.digest import digest
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.analyse import Analysis
from sqlstream.compiler.places import Places
from sqlstream.compiler.spark_parser import ParserUnavailableError, ParseWithSpark, SparkParser, SyntaxRefusal
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.compiler.sql.sql_text import SqlText, read_sql
from sqlstream.compiler.sql.typos import find_typos, misspelt
from sqlstream.errors import Finding, Severity
from sqlstream.location import Place
from sqlstream.project.wording import quoted

SYNTAX_ERROR = "PARSE_SYNTAX_ERROR"
"""Spark's condition for text that its grammar does not know. Other refusals of its parser say what is wrong."""

SUSPECT = frozenset({"misplaced-watermark", "missing-ref"})
"""Codes of findings that a misspelt keyword can cause: `form x` hides a FROM, `x gruop by a, b` adds the table `b`."""

Answers = dict[str, tuple[SqlProblem, ...]]
"""What Spark's parser finds wrong with models, by unique id; nothing where it accepts one."""


def suspect_models(models: Mapping[str, CompiledModel], broken: Mapping[str, Sequence[Finding]]) -> frozenset[str]:
    """Returns the ids of the `broken` models that sqlglot cannot read: a misspelt keyword may cause their findings."""
    suspects = [node for node, findings in broken.items() if any(finding.code in SUSPECT for finding in findings)]
    if not suspects:
        return frozenset()
    from sqlstream.compiler.sql.parse import parse_sql  # it loads sqlglot

    return frozenset(node for node in suspects if parse_sql(models[node].sql).tree is None)


def unread_findings(
    compiled: CompiledProject,
    analyses: Mapping[str, Analysis],
    faulty: Collection[str],
    suspects: Collection[str],
    parser: SparkParser | None,
    memory: Memory,
    places: Places,
) -> dict[str, list[Finding]]:
    """Returns the findings about models that sqlglot cannot read, by unique id; `faulty` ones have findings.

    What Spark's parser refuses is an error. What it accepts is an info, since no rule can follow it. Where Spark's
    parser cannot be asked, it is a warning. Of `suspects`, which have findings too, only what it refuses is reported.
    """
    unread = [compiled.models[node] for node, known in analyses.items() if not known.is_read and node not in faulty]
    unread += [compiled.models[node] for node in compiled.models if node in suspects]
    if not unread:
        return {}
    answers, unavailable = _ask(unread, parser, memory)
    found: dict[str, list[Finding]] = {}
    for model in unread:
        problems = answers.get(model.unique_id)
        if problems:
            found[model.unique_id] = [
                problem.at(places.locate(model.unique_id, problem.offset)) for problem in problems
            ]
        elif model.unique_id not in suspects:
            offset = analyses[model.unique_id].found.unread_at
            place = Place(model.file.location) if offset is None else places.locate(model.unique_id, offset)
            finding = _accepted(model, place) if problems is not None else _unasked(model, place, unavailable)
            found[model.unique_id] = [finding]
    return found


def _ask(models: Sequence[CompiledModel], parser: SparkParser | None, memory: Memory) -> tuple[Answers, str]:
    """The answers that are remembered or given now, and why there are not more."""
    if parser is None:
        return {}, "Spark's parser is not available"
    keys = {model.unique_id: digest(model.name, model.sql, parser.identity) for model in models}
    known = {model.unique_id: memory.recall("syntax", model.file.path, keys[model.unique_id]) for model in models}
    answers: Answers = {node: problems for node, problems in known.items() if problems is not None}
    missing = [model for model in models if model.unique_id not in answers]
    if not missing:
        return answers, ""
    from sqlstream.compiler.sql.parse_limits import is_bounded  # it loads sqlglot

    missing.sort(key=lambda model: not is_bounded(read_sql(model.sql)))  # deep nesting may end the parser's process
    try:
        with parser.open(len(missing)) as parse:
            for model in missing:
                problems = answers[model.unique_id] = _problems(model, parse)
                memory.note("syntax", model.file.path, keys[model.unique_id], problems)
    except ParserUnavailableError as error:
        return answers, str(error)
    return answers, ""


def _problems(model: CompiledModel, parse: ParseWithSpark) -> tuple[SqlProblem, ...]:
    refusal = parse(model.sql)
    if refusal is None:
        return ()
    if refusal.condition != SYNTAX_ERROR:
        return (_refused(model, refusal),)
    text = read_sql(model.sql)
    typos = find_typos(text, refusal, parse)
    return tuple(misspelt(text.tokens[typo.index], typo.keyword) for typo in typos) or (_syntax_error(text, refusal),)


def _syntax_error(text: SqlText, refusal: SyntaxRefusal) -> SqlProblem:
    tokens = text.tokens
    last = len(tokens) - 1
    index = next((i for i, token in enumerate(tokens) if token.end > (refusal.offset or 0)), len(tokens))
    place = f"at {quoted(tokens[index].text)}" if index <= last else "at its end"
    return SqlProblem(
        at(tokens, min(index, last)).start,
        "sql-syntax",
        f"Spark cannot parse the SQL {place}",
        f"Spark reports: {refusal.words}",
        "fix the SQL here or just before: a word, a comma or a bracket may be missing, misspelled or extra",
    )


def _refused(model: CompiledModel, refusal: SyntaxRefusal) -> SqlProblem:
    condition = f" [{refusal.condition}]" if refusal.condition else ""
    return SqlProblem(
        refusal.offset or 0,
        "sql-syntax",
        f"Spark rejects the SQL of `{model.name}`",
        f"Spark reports: {refusal.words}{condition}",
        "change the SQL so that Spark accepts it",
    )


def _accepted(model: CompiledModel, place: Place) -> Finding:
    return Finding(
        "not-followed",
        f"sqlstream cannot analyze the SQL of `{model.name}`",
        "Spark's parser accepts it, but sqlstream's parser does not know this syntax, so its columns and "
        "stream rules are not checked",
        "run `sqlstream compile --check` to check them with Spark",
        place.location,
        Severity.INFO,
        place.calls,
    )


def _unasked(model: CompiledModel, place: Place, why: str) -> Finding:
    return Finding(
        "not-followed",
        f"sqlstream cannot parse the SQL of `{model.name}`, and Spark's parser is not available",
        f"{why}; this may be a typo, or syntax that only Spark's parser knows",
        "check the SQL here for a typo, or run `sqlstream compile --check` to check it with Spark",
        place.location,
        Severity.WARNING,
        place.calls,
    )
