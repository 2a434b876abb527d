"""PySpark's log records about sqlstream's calls are dropped, and those of the program are not."""

from __future__ import annotations

import logging
import threading

import pytest

from sqlstream.spark.jvm.session import quiet_pyspark

PY4J = logging.getLogger("py4j.java_gateway")


def test_only_records_of_sqlstreams_threads_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """The calling thread and later threads are quiet; a thread of the program that already runs is heard."""
    begun, ended = threading.Event(), threading.Event()

    def program() -> None:
        begun.wait()
        PY4J.error("of the program")
        ended.set()

    thread = threading.Thread(target=program)
    thread.start()
    with caplog.at_level(logging.INFO, "py4j"):
        with quiet_pyspark():
            PY4J.error("of sqlstream")
            later = threading.Thread(target=PY4J.error, args=("of a query",))
            later.start()
            later.join()
            begun.set()
            ended.wait()
            assert PY4J.getEffectiveLevel() == logging.INFO
        PY4J.error("afterwards")
    thread.join()

    assert [record.getMessage() for record in caplog.records] == ["of the program", "afterwards"]


def test_nested_sessions_end_together() -> None:
    """Records are heard again only after the last of several sessions has ended, and no filter remains."""
    with quiet_pyspark():
        with quiet_pyspark():
            pass
        assert PY4J.filters

    assert not PY4J.filters
