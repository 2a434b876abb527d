"""Spark's parser overruns its stack on what the compiler refuses as nested too deeply."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from too_deep import TOO_DEEP

QUICK = ("calls", "coalesce", "plus", "concatenation")
"""Forms that the parser gives up at once: it reads brackets and CASE for a minute before it overflows."""


@pytest.mark.parametrize("form", QUICK)
def test_the_parser_overflows(spark: SparkSession, form: str) -> None:
    """Also when the JVM has compiled the parser, which makes its calls smaller."""
    for _ in range(100):
        spark.sql("select coalesce(abs((((case when id > 1 then 1 + 2 else 3 || 4 end)))), 5) from range(1)")

    with pytest.raises((PySparkException, Py4JJavaError), match=r"TOO_COMPLEX|StackOverflow"):
        spark.sql(TOO_DEEP[form])
