"""The ids of the topics and tables that a query reads, which change when one is deleted and created again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import SparkSession

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.sql.names import quote_identifier
from sqlstream.project.files.paths import join
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, iceberg_table_id
from sqlstream.spark.reading.kafka_ends import topic_ids
from sqlstream.spark.running.endpoints import UnreachableError, check_brokers, source_endpoint
from sqlstream.spark.secrets import Secrets
from sqlstream.state.ledger import InputIds

logger = logging.getLogger("sqlstream.inputs")


def input_ids(compiled: CompiledProject, model: CompiledModel, session: SparkSession, secrets: Secrets) -> InputIds:
    """Returns the ids of what the streaming sources of `model` read now, by source and by topic.

    What cannot be asked is left out: a server that does not respond, or does not allow it, is reported when the query
    reads from it.
    """
    found: dict[str, Mapping[str, str]] = {}
    for table in compiled.tables_of(model.unique_id):
        ask = _IDS.get(table.format)
        if ask is None or table.mode != "stream" or secrets.missing(table.options, table.location):
            continue
        try:
            ids = ask(
                replace(table, path=table.path and join(str(compiled.project.root), table.path)), session, secrets
            )
        # an invalid option fails at the start; py4j raises TypeError for a class that a Spark does not have
        except (UnreachableError, ValueError, TypeError, AttributeError, *SPARK_ERRORS):
            logger.info("the ids of %s are unknown", table.full_name, exc_info=True)
            continue
        found[table.full_name] = ids
    return found


def _topic_ids(table: SourceTable, session: SparkSession, secrets: Secrets) -> dict[str, str]:
    endpoint = source_endpoint(table, secrets)
    check_brokers([endpoint] if endpoint.addresses else [])
    return topic_ids(session, secrets.resolve_all(table.options))


def _delta_id(table: SourceTable, session: SparkSession, _secrets: Secrets) -> dict[str, str]:
    name = table.table or f"delta.{quote_identifier(table.path or '', always=True)}"
    found = session.sql(f"DESCRIBE DETAIL {name}").select("id").first()
    return {table.table or table.path or "": str(found["id"])} if found is not None else {}


def _iceberg_id(table: SourceTable, session: SparkSession, _secrets: Secrets) -> dict[str, str]:
    return {table.table or table.path or "": iceberg_table_id(session, table.table, table.path)}


_IDS: Mapping[str, Callable[[SourceTable, SparkSession, Secrets], dict[str, str]]] = {
    "kafka": _topic_ids,
    "delta": _delta_id,
    "iceberg": _iceberg_id,
}
