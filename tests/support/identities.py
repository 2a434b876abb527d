"""Queries for the tests of state/."""

from __future__ import annotations

from sqlstream.state.ledger import Ledger, QueryIdentity, SourceUse
from sqlstream.state.spark_settings import SOURCE_EVOLUTION

ORDERS = SourceUse("shop__orders", "shop.orders", None)
ZONE = "spark.sql.session.timeZone"

STATEFUL = QueryIdentity(
    query="per_hour",
    model="per_hour",
    models={"clean": "select 1", "per_hour": "select window.start, count(*) as größe from clean"},
    fingerprints={"clean": "c1", "per_hour": "p1"},
    sources=(ORDERS,),
    sink_format="parquet",
    sink_path="per_hour",
    output_mode="append",
    stateful=True,
    settings={ZONE: "UTC", SOURCE_EVOLUTION: "true", "spark.sql.shuffle.partitions": "2"},
)
"""An aggregation that reads one view."""


def ledger_of(identity: QueryIdentity) -> Ledger:
    """Returns the ledger of the first version of a query."""
    written = {name: f"{sql}\n" for name, sql in identity.models.items()}
    return Ledger(
        identity, 1, "2024-01-01T00:00:00+00:00", "0.1.0", "4.3.0", "start", "/data/per_hour", written=written
    )
