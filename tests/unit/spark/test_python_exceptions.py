"""The error message for an exception in the project's Python code."""

from __future__ import annotations

import traceback

from sqlstream.spark.jvm.errors import python_exception


def shut() -> None:
    """Fails as a sink would."""
    raise OSError("the door is shut")


def trace_of_chained_exceptions() -> str:
    """Returns Python's traceback of an exception that was raised while another one was handled."""
    try:
        try:
            shut()
        except OSError as error:
            raise ValueError("no door") from error
    except ValueError:
        return traceback.format_exc()
    raise AssertionError


def test_the_last_exception_and_its_location_are_returned() -> None:
    """The result is the last exception and its location, without PySpark's frames or the handled exception."""
    words = python_exception(
        "An exception was raised by the Python Proxy. Return Message: " + trace_of_chained_exceptions()
    )

    assert words is not None
    assert words.startswith("ValueError: no door (test_python_exceptions.py line ")
    assert words.endswith(", in trace_of_chained_exceptions)")


def test_other_text_has_no_traceback() -> None:
    """Spark's own messages do not change."""
    assert python_exception("[DIVIDE_BY_ZERO] Division by zero") is None
