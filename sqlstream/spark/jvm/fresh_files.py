"""Makes each micro-batch read the files that exist now, each of them once.

Spark 4.3 lists the files of a static table when a query starts: later batches would not see new files, and would read a
file that was replaced only up to its old length. And it reads the files of a batch several times if the path of one
looks like a pattern (SPARK-58518). The rule in FreshFiles.java corrects both where Spark's optimizer lets programs add
rules (`spark.experimental.extraOptimizations`). Without it, `refuse_doubled_files` has to do.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat, lit, raise_error, when

from sqlstream.spark.jvm.compiled_java import compiled_class
from sqlstream.spark.jvm.gateway import seq_items
from sqlstream.spark.jvm.internals import can_change_queries


def read_fresh_files(session: SparkSession) -> None:
    """Makes the queries that start in `session` from now on list their files in each batch, unless `can_change_queries`
    forbids it. Raises: Spark's errors. Over Connect: a file with a path that looks like a pattern ends the query, and
    static tables keep the files that they have at the start.
    """
    if not can_change_queries(session):
        return
    java_session: Any = session._jsparkSession  # noqa: SLF001
    methods, kind = java_session.experimental(), compiled_class(session, "FreshFiles")
    if not any(rule.getClass().getName() == kind.getName() for rule in seq_items(methods.extraOptimizations())):
        rules = methods.extraOptimizations().appended(kind.getConstructors()[0].newInstance(None))
        getattr(methods, "extraOptimizations_$eq")(rules)  # Scala's name of the setter


def refuse_doubled_files(frame: DataFrame) -> DataFrame:
    """Returns the rows of a stream of files. If the rule cannot be used, the query fails at a file whose path looks
    like a pattern: Spark could read the other files of the batch several times.
    """
    if can_change_queries(frame.sparkSession):
        return frame
    path = col("_metadata.file_path")
    message = concat(
        lit("Spark can read the other files of a batch twice because the path of this file looks like a pattern: "),
        path,
        lit("; rename the file, or use a Spark that sqlstream was tested with, and its internals"),
    )
    return frame.where(
        # file_path is a URI, in which most of these characters are encoded
        when(path.rlike(r"[\]\[{}*?\\]|%(5B|5C|5D|7B|7D|3F)"), raise_error(message)).otherwise(lit(True))
    )
