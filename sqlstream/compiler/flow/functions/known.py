"""Spark's built-in functions by name: those of the registry of Spark 4.3 and those that its grammar knows.

`tests/spark/test_function_names.py` compares them with the installed Spark.
"""

from __future__ import annotations

from sqlstream.compiler.flow.functions import aggregates, scalars
from sqlstream.compiler.flow.functions.signatures import read_signatures

_AGGREGATES = dict(read_signatures(aggregates.AGGREGATES))
_GENERATORS = dict(read_signatures(aggregates.GENERATORS))
_WINDOW_FUNCTIONS = dict(read_signatures(aggregates.WINDOW_FUNCTIONS))

FUNCTIONS = {**_AGGREGATES, **_GENERATORS, **_WINDOW_FUNCTIONS, **dict(read_signatures(scalars.SCALARS))}
"""The signatures of all functions that can be used in an expression, by name in lower case."""

AGGREGATES = frozenset(_AGGREGATES)
GENERATORS = frozenset(_GENERATORS)
WINDOW_FUNCTIONS = frozenset(_WINDOW_FUNCTIONS)
TABLE_FUNCTIONS = GENERATORS | frozenset(aggregates.TABLE_FUNCTIONS.split())

ROW_IDS = frozenset({"monotonically_increasing_id"})
"""Functions that Spark rejects in a streaming query, also in its static parts."""

RANDOM = ROW_IDS | frozenset(
    """
    input_file_block_length input_file_block_start input_file_name rand randn random randstr shuffle spark_partition_id
    uniform uuid
    """.split()  # noqa: SIM905 - as a list of quoted words this would be three times as long
)
"""The functions that are not `deterministic` in Spark 4.3."""
