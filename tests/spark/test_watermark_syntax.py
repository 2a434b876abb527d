"""Spark's own parser and lexer read the SQL that sqlstream compiles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.compiler.sql.tokens import Token, TokenKind, tokenize

FIXTURES = Path(__file__).parents[1] / "unit" / "compiler" / "fixtures"


def _sections(section: str, *folders: str) -> list[str]:
    """Returns the texts under `-- in` or `-- out` of all compiler fixtures."""
    texts = [path.read_text(encoding="utf-8") for folder in folders for path in sorted((FIXTURES / folder).glob("*"))]
    pattern = rf"^-- {section}\n(.*?)(?=\n+-- (?:in|out|reads:|error:|warning:)|\s*\Z)"
    return [sql for text in texts for sql in re.findall(pattern, text, re.MULTILINE | re.DOTALL)]


def _parsed(spark: SparkSession, sql: str) -> str:
    return str(spark._jsparkSession.sessionState().sqlParser().parsePlan(sql))


def _names(plan: str) -> list[str]:
    """Returns the last parts of the relation names in a plan, in alphabetical order."""
    return sorted(part.split("]")[0].split(", ")[-1] for part in plan.split("UnresolvedRelation [")[1:])


def _lexed(spark: SparkSession, sql: str) -> list[str]:
    """Returns the texts of the tokens that Spark's lexer gives to its parser."""
    jvm = spark._jvm
    assert jvm is not None
    antlr, parser = jvm.org.antlr.v4.runtime, jvm.org.apache.spark.sql.catalyst.parser
    lexer = parser.SqlBaseLexer(parser.UpperCaseCharStream(antlr.CharStreams.fromString(sql)))
    return [token.getText() for token in lexer.getAllTokens() if token.getChannel() == 0]


def _flat(tokens: tuple[Token, ...]) -> list[str]:
    """Returns the texts of sqlstream's tokens, with hints split into single tokens."""
    texts: list[str] = []
    for token in tokens:
        texts += ["/*+", *_flat(token.inside), "*/"] if token.kind is TokenKind.HINT else [token.text]
    return texts


@pytest.mark.smoke
@pytest.mark.parametrize("sql", _sections("out", "watermarks", "second_references"))
def test_spark_reads_the_compiled_sql(spark: SparkSession, sql: str) -> None:
    """Spark parses each compiled text, and its plan has every watermark clause."""
    plan = _parsed(spark, sql)
    clauses = [token for token in tokenize(sql) if token.key == "DELAY"]
    assert plan.count("UnresolvedEventTimeWatermark") == len(clauses)


@pytest.mark.parametrize("sql", _sections("in", "watermarks", "second_references"))
def test_tokens_are_those_of_sparks_lexer(spark: SparkSession, sql: str) -> None:
    """Each text is split into the same tokens as by Spark's lexer."""
    assert _flat(tokenize(sql)) == _lexed(spark, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "1_000 0x1F 1st 2.x 1e 1.e5 1a 123L 1.5BD 1e-3D .5 5. a.1b 1.2.3 1e-5x 1.5e+5x 1.55x 5.é a.5b 1..2",
        "'a''b' r'a\\' 'x\\'y' \"q\"\"r\" R\"a\" x'1F' 'a' 'b' R 'c' 'a\\\n b'",
        "a:b.c[0]::int ?:: |> -> => @ # <=> || << != == !> !< <> ~ ^ & | s3://b hdfs://b/c-d?e=1 f",
        "a -- c\\\nfrom b\n c -- d\\\r\n e -- f\r g",
        "/* a /* b */ c */ d /* /*+ e */ f /**/ g /*/ h */ i /* -- */ j -- /* \n k",
        "x@v1 @v @ x@view x@20260101",
        "select /*+ A('*/', b -- c\n) /* d */ */ {# x #} {% y %} `ü``b` sélect",
    ],
)
def test_unusual_text_is_split_as_in_spark(spark: SparkSession, sql: str) -> None:
    """Unusual numbers, literals, operators and comments are split as in Spark's lexer."""
    assert _flat(tokenize(sql)) == _lexed(spark, sql)


@pytest.mark.parametrize("sql", _sections("in", "relations"))
def test_every_relation_accepts_clauses_at_its_end(spark: SparkSession, sql: str) -> None:
    """Spark's plan has the relations that sqlstream finds, and takes a watermark clause and an alias there."""
    plan = _parsed(spark, sql)
    relations = read_sql(sql).relations
    assert sorted(r.name for r in relations if r.name) == _names(plan)
    for relation in relations:
        if relation.takes_clauses and not relation.has_watermark:
            with_clause = _inserted(sql, relation.primary_end, "WATERMARK ts DELAY OF INTERVAL 3 DAYS")
            watermarks = _parsed(spark, with_clause).count("UnresolvedEventTimeWatermark")
            assert watermarks == plan.count("UnresolvedEventTimeWatermark") + 1
        if relation.takes_clauses and relation.alias is None:
            assert "SubqueryAlias zz" in _parsed(spark, _inserted(sql, relation.alias_at, "AS zz"))


def _inserted(sql: str, offset: int, text: str) -> str:
    return f"{sql[:offset]} {text} {sql[offset:]}"
