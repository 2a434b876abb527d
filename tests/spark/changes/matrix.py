"""The change matrix: all edits, and Spark's settings before and after those of a group."""

from __future__ import annotations

from tests.spark.changes.closed_edits import CLOSED_EDITS
from tests.spark.changes.edits import EDITS

MATRIX = (*EDITS, *CLOSED_EDITS)

SETTINGS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "queries": ({}, {}),
    "zone": ({"spark.sql.session.timeZone": "UTC"}, {"spark.sql.session.timeZone": "America/New_York"}),
    "ansi": ({"spark.sql.ansi.enabled": "false"}, {"spark.sql.ansi.enabled": "true"}),
    "ansi off": ({"spark.sql.ansi.enabled": "true"}, {"spark.sql.ansi.enabled": "false"}),
    "names": (
        {},
        {
            "spark.sql.caseSensitive": "true",
            "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
            "spark.sql.decimalOperations.allowPrecisionLoss": "false",
            "spark.sql.legacy.sizeOfNull": "true",
        },
    ),
    "values": (
        {"spark.sql.variable.substitute": "true", "spark.my.factor": "2"},
        {"spark.sql.variable.substitute": "true", "spark.my.factor": "3"},
    ),
    "times": ({}, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}),
    "texts": (
        {"spark.sql.jsonGenerator.ignoreNullFields": "true"},
        {
            "spark.sql.jsonGenerator.ignoreNullFields": "false",
            "spark.sql.legacy.castComplexTypesToString.enabled": "true",
            "spark.sql.parser.escapedStringLiterals": "true",
        },
    ),
}
"""By group; one that is not here has the settings of `queries`."""


def settings_text(settings: dict[str, str]) -> str:
    """Returns the settings as they are in the braces of a YAML mapping."""
    return ", ".join(f"{name}: '{value}'" for name, value in settings.items())


SHORT = frozenset(
    {
        *("sum_times", "where_key", "having_changed", "split", "delay_longer", "join_computed", "join_bound"),
        *("dedup_key", "append_update", "seed_changed", "option_rate", "zone_date"),
    }
)
"""The edits of `make spark`, some of each kind."""

SMOKE = frozenset({"sum_times", "where_key", "delay_longer", "dedup_key", "option_rate"})
"""The edits on the oldest supported Spark, which numbers sources instead of naming them."""
