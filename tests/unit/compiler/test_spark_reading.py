"""What Spark reads in another way than sqlglot: the tree is the one of the same expression written out."""

from __future__ import annotations

import pytest

from sqlstream.compiler.sql.parse import parse_sql


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("date '2024-01-01'::string", "cast(date '2024-01-01' as string)"),
        ("date '2024-01-01'::timestamp::string", "cast(cast(date '2024-01-01' as timestamp) as string)"),
        ("time '10:00:00' :: int", "cast(time '10:00:00' as int)"),
        ("-1::string", "cast(-1 as string)"),
        ("- '1'::int", "-cast('1' as int)"),
        ("a - 1::string", "a - cast(1 as string)"),
        ("date('2024-01-01'::string)", "date(cast('2024-01-01' as string))"),
        ("+a", "positive(a)"),
        ("b * +a", "b * positive(a)"),
        ("+(a)", "positive((a))"),
        ("a + b", "(a + b)"),
        ("+1", "1"),
        ("~a", "(~a)"),
    ],
)
def test_an_expression_is_read_as_spark_reads_it(written: str, meant: str) -> None:
    """What stands before a literal belongs to it, and a plus sign is an operator."""
    read, expected = parse_sql(f"select {written} from t").tree, parse_sql(f"select {meant} from t").tree

    assert read is not None
    assert expected is not None
    assert read.expressions[0].sql("spark") == expected.expressions[0].unnest().sql("spark")
