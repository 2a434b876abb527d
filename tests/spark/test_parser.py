"""For SQL that sqlstream cannot parse, it asks Spark's own parser without a session and caches the answer."""

from __future__ import annotations

import gc
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.compiler.sql.grammar import grammar_problems
from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.errors import Finding
from tests.spark.conftest import ProjectFolder, shop_project

READS = "from {{ source('shop', 'orders') }}"


@dataclass
class Compilations:
    """Compiles a project and keeps the progress messages."""

    project: ProjectFolder
    lines: list[str] = field(default_factory=list)

    def findings(self, **options: Any) -> list[Finding]:
        """Returns the findings in models, except those for models that nothing reads."""
        self.lines.clear()
        try:
            found = compile_models(ProjectRequest(self.project.root, notify=self.lines.append, **options)).findings
        except FindingsError as error:
            found = error.findings
        codes = ("sql-syntax", "not-followed", "misplaced-watermark", "missing-ref")
        return [finding for finding in found if finding.code in codes]


@pytest.fixture
def compiling(folder: ProjectFolder) -> Compilations:
    """The project of the fixture `folder`, ready to compile."""
    return Compilations(folder)


@pytest.mark.smoke
def test_typos_are_errors_and_parsed_once(compiling: Compilations) -> None:
    """Typos are errors on their lines; Spark is asked about all texts once, and the second compile needs no Java."""
    compiling.project.write(
        {
            "models/a.sql": f"select kind, count(*) as n\n{READS} o\nwhere id betwen 1 and 2\ngroup by kind",
            "models/b.sql": f"select id, kind\nform {READS[5:]} where id > 1 adn kind = 'x'",
            "models/c.sql": f"select id as x y\n{READS}",
            "models/d.sql": f"select date '2024-13-01' as d, x:y:z::string\n{READS}",
            "models/e.sql": f"select id {READS}",
            "models/e.yml": "models:\n  - name: e\n    data_tests:\n"
            "      - expression_is_true: {expression: id > 0 limit 1}\n",
            "models/fine.sql": f"{READS} map id, kind using 'cat' as id, kind",
        }
    )
    first = compiling.findings()

    assert [(str(finding.location), finding.code, str(finding.severity)) for finding in first] == [
        ("models/a.sql:3:10", "sql-syntax", "error"),
        ("models/b.sql:2:1", "sql-syntax", "error"),
        ("models/b.sql:2:50", "sql-syntax", "error"),
        ("models/c.sql:1:16", "sql-syntax", "error"),
        ("models/d.sql:1:8", "sql-syntax", "error"),
        ("models/fine.sql:1:41", "not-followed", "info"),
        ("models/e.yml:4:9", "sql-syntax", "error"),
    ]
    assert [finding.fix for finding in first[:3]] == [f"did you mean `{word}`?" for word in ("between", "from", "and")]
    assert "INVALID_TYPED_LITERAL" in first[4].why
    assert compiling.lines == ["Checking 6 models with Spark's parser"]

    assert compiling.findings(env={"JAVA_HOME": "/nowhere"}) == first
    assert compiling.lines == []


MISTAKES = (
    *("select , id {}", "select concat(, kind) as k {}", "select id {} order by , id", "select id {} where id in ()"),
    *("select timestamp '2024-01-29 18.47.18' as t {}", "select date '2024-02-30' as d {}", "select x'123z' as x {}"),
    *("select interval '1' foo as i {}", "select interval 1 as i {}", "select datetime '2024-01-01' as d {}"),
    *("select id {} where kind similar to 'x'", "select id {} where id notnull", "select id {} for update"),
    *(
        "select id {} where id in 1",
        "select id {} where kind is 'x'",
        "select [1, 2] as a {}",
        "select id {} limit 1, 2",
    ),
    *("select * except kind {}", "select id as b {} order by id asc desc", "select count(*) filter (true) as n {}"),
    *("select count(*) as n {} o where kind = and id = 1", "select o. .id {} o", "select 1e400 as x {}"),
    *("{} |> select id |> by id", "{} |> where id > and id < 3", "select kind like any 'x' as k {}"),
)
"""Queries that sqlglot parses and Spark does not, with `{}` for FROM."""

NO_MISTAKES = (
    *("select id as by {}", "select date 'today' as d, interval '1' day as i {}", "select array() as a, x'0f' as x {}"),
    *("select interval '1 2:03:04.5' day to second as i {}", "select timestamp '2024-1-2 3:4:5' as t {}"),
    *("{} |> select id, kind |> where id > 1", "select position('a' in kind) as p {}", "select 1Y as y, 10S as s {}"),
)


@pytest.mark.slow
def test_doubtful_sql_is_parsed_by_spark(compiling: Compilations) -> None:
    """Spark's parser decides about SQL that sqlglot reads more tolerantly, and nothing is said if Spark accepts it."""
    queries = dict(enumerate(query.format(READS) for query in (*MISTAKES, *NO_MISTAKES)))
    compiling.project.write({f"models/m{number}.sql": query for number, query in queries.items()})
    found = {
        int(finding.location.path.removeprefix("models/m").removesuffix(".sql"))
        for finding in compiling.findings()
        if finding.location and (finding.code, str(finding.severity)) == ("sql-syntax", "error")
    }

    assert [query for number, query in queries.items() if (number in found) != (number < len(MISTAKES))] == []
    assert len(compiling.lines) == 1


@pytest.mark.slow
def test_spark_parses_beside_a_session(compiling: Compilations, spark: SparkSession) -> None:
    """Spark's parser also answers in a program with a session, which has another JVM."""
    compiling.project.write({f"models/m{number}.sql": f"select id as x y\n{READS} -- {number}" for number in range(40)})
    spark.range(1).count()
    gc.collect()  # the session's JVM forgets objects, so ids of the other JVM are unknown to it

    assert {(finding.code, str(finding.severity)) for finding in compiling.findings()} == {("sql-syntax", "error")}


@pytest.mark.slow
def test_the_parser_uses_the_targets_settings(compiling: Compilations) -> None:
    """The parser uses the target's settings, such as whether double quotes mark names."""
    compiling.project.write({"models/a.sql": f'select id as "my id", x:y:z::string {READS}'})
    (refused,) = compiling.findings()
    setting = "spark: {spark.sql.ansi.enabled: 'true', spark.sql.ansi.doubleQuotedIdentifiers: 'true'}"
    compiling.project.write({"project.yml": f"name: shop\ntargets: {{local: {{master: 'local[2]', {setting}}}}}\n"})
    (accepted,) = compiling.findings()

    assert (refused.code, accepted.code, str(accepted.severity)) == ("sql-syntax", "not-followed", "info")
    assert len(compiling.lines) == 1  # another setting needs a new answer


@pytest.mark.slow
def test_a_misspelt_from_is_the_only_error(compiling: Compilations) -> None:
    """A misspelt FROM is the only error of a model with a watermark hint; where Spark parses the text, the hint is."""
    hint = "/*+ WATERMARK(at, '1 minute') */"
    compiling.project.write(
        {
            "models/a.sql": f"select {hint} id\nform {READS[5:]}",
            "models/b.sql": f"{READS} map id, (select {hint} 1) using 'cat' as id, kind",
        }
    )
    found = {(finding.location.path, finding.code) for finding in compiling.findings() if finding.location}

    assert found == {("models/a.sql", "sql-syntax"), ("models/b.sql", "misplaced-watermark")}


def test_java_does_not_start_for_readable_sql(compiling: Compilations) -> None:
    """Java does not start for valid SQL, nor for mistakes that sqlstream finds itself."""
    compiling.project.write(
        {"models/a.sql": f"select id {READS}", "models/b.sql": f"select kind {READS} gruop by kind"}
    )

    (found,) = compiling.findings()

    assert (str(found.location), found.fix) == ("models/b.sql:1:49", "did you mean `group`?")
    assert compiling.lines == []


def test_a_java_that_does_not_start_is_a_warning(compiling: Compilations) -> None:
    """A Java that does not start gives a warning with its message, because the model may be right."""
    compiling.project.write({"models/a.sql": f"select id as x y {READS}"})
    (found,) = compiling.findings(env={**os.environ, "JAVA_TOOL_OPTIONS": "-Xmx1k"})

    assert (found.code, str(found.severity)) == ("not-followed", "warning")
    assert "Too small maximum heap" in found.why


@pytest.mark.slow
def test_keywords_are_accepted_as_aliases(spark: SparkSession) -> None:
    """No SQL that Spark parses is refused because of a keyword as an alias or after an alias."""
    parser: Any = spark._jsparkSession.sessionState().sqlParser()
    keywords = [row.keyword for row in spark.sql("select keyword from sql_keywords()").collect()]
    texts = [
        f"select * from t {alias}{keyword}{rest}"
        for keyword in keywords
        for alias in ("", "a ")
        for rest in ("", " x", " by x", " (x)", " 1")
    ]
    refused = [text for text in texts if grammar_problems(read_sql(text))]

    assert len(refused) > len(keywords)
    assert [text for text in refused if _reads(parser, text)] == []


def _reads(parser: Any, text: str) -> bool:
    try:
        parser.parsePlan(text)
    except ParseException:
        return False
    return True


@pytest.mark.slow
def test_threads_ask_at_once(tmp_path: Path) -> None:
    """Threads can ask at the same time, although PySpark takes port and secret from the shared environment."""
    projects = [shop_project(tmp_path / name) for name in ("a", "b")]
    for project in projects:
        project.write({"models/m.sql": f"select {project.root.name} as x y\n{READS}"})

    with ThreadPoolExecutor(len(projects)) as pool:
        found = list(pool.map(lambda project: Compilations(project).findings(), projects))

    for project in projects:
        shutil.rmtree(project.root / "target")
    assert found == [Compilations(project).findings() for project in projects]
    assert [finding.code for findings in found for finding in findings] == ["sql-syntax", "sql-syntax"]
