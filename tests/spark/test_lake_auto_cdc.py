"""Tables of AUTO CDC, from Spark's declarative pipelines, beside those of `sequence_by` and `history` in Delta Lake and Iceberg.

`make auto-cdc` makes the tables of AUTO CDC first, from 20,000 changes, and sets the number of kills to ten.
"""

from __future__ import annotations

import pytest

from tests.spark.conftest import ProjectFolder
from tests.support.auto_cdc_tables import FILE, KILLS, MODELS, columns, models, read_auto_cdc
from tests.support.keyed_changes import SOURCES, as_text
from tests.support.lake_tables import FORMATS, SINKS, lake_session, rows


@pytest.mark.slow
@pytest.mark.skipif(not FILE, reason="runs with `make auto-cdc`")
def test_tables_of_both_formats_are_those_of_auto_cdc(folder: ProjectFolder) -> None:
    """Changes in random order over batches, with duplicates and deletions, make the same tables of type 1 and 2 in both
    formats, through kills.
    """
    auto_cdc = read_auto_cdc()
    folder.write({"sources.yml": SOURCES, "sinks.yml": SINKS, **models(FORMATS)})
    folder.batches("in/changes", auto_cdc.batches())

    folder.run_through_kills(KILLS, 7, 2 * len(FORMATS))
    assert folder.run().succeeded

    with lake_session(folder) as session:
        for table in MODELS:
            for each in FORMATS:
                found = rows(session, folder, each, f"{table}_{each}", *columns(table))
                assert as_text(found) == auto_cdc.tables[table], f"{table} in {each}"
