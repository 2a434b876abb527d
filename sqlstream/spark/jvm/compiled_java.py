"""Compiles the Java classes beside this file in the driver, with the compiler of the code that Spark generates.

Over Connect: not available.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.gateway import java_class, jvm_of

_COMPILING = Lock()


def compiled_class(session: SparkSession, name: str) -> Any:
    """Returns the class `sqlstream.NAME` of the file NAME.java, compiled once in each JVM. Raises: Spark's errors."""
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001
    with _COMPILING:
        compiled: dict[str, Any] = vars(gateway).setdefault("compiled", {})  # any other name is an object of the JVM
        if name not in compiled:
            jvm = jvm_of(session)
            compiler = java_class(session, "org.codehaus.janino.SimpleCompiler")()
            compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
            compiler.cook(Path(__file__).with_name(f"{name}.java").read_text(encoding="utf-8"))
            compiled[name] = compiler.getClassLoader().loadClass(f"sqlstream.{name}")
        return compiled[name]
