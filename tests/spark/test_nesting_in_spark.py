"""Spark's parser overflows its stack on the SQL that the compiler refuses as nested too deeply."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.corpus.too_deep import TOO_DEEP

QUICK = ("calls", "coalesce", "plus", "concatenation")
"""Forms on which the parser fails at once; it reads brackets and CASE for a minute before it overflows."""


@pytest.mark.parametrize("form", QUICK)
def test_the_parser_overflows(spark: SparkSession, form: str) -> None:
    """The parser overflows even after the JVM has compiled it, which makes its stack frames smaller."""
    for _ in range(100):
        spark.sql("select coalesce(abs((((case when id > 1 then 1 + 2 else 3 || 4 end)))), 5) from range(1)")

    with pytest.raises((PySparkException, Py4JJavaError), match=r"TOO_COMPLEX|StackOverflow"):
        spark.sql(TOO_DEEP[form])
