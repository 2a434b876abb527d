"""Tables of Spark's catalog that a query writes into."""

from __future__ import annotations

from pyspark.sql import SparkSession


def table_provider(session: SparkSession, name: str) -> str | None:
    """Returns the format of the table `name`, None where there is no such table or its catalog does not say.

    Spark writes into a table that is there only when it is told the table's own format. Raises: Spark's errors.
    """
    if not session.catalog.tableExists(name):
        return None
    rows = session.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    return next((str(row["data_type"]) for row in rows if row["col_name"] == "Provider"), None)
