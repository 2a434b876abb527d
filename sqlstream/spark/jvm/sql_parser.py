"""Spark's own SQL parser without a session: a JVM with the installed Spark's jars that parses SQL and runs nothing.

It starts within two seconds, faster than a session. The JVM ends after the last text.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from pyspark.find_spark_home import _find_spark_home

from sqlstream.compiler.spark_versions import ParserUnavailableError, ParseWithSpark, SyntaxRefusal
from sqlstream.spark.jvm.class_archive import use_options
from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.jvm.gateway import JVM_ERRORS, call_in_other_jvm, causes_of, is_jvm_gone
from sqlstream.spark.jvm.internals import is_missing
from sqlstream.spark.jvm.java import JavaRuntime
from sqlstream.spark.jvm.launch import POLL_SECONDS, connect, start_gateway
from sqlstream.spark.jvm.session import LOOPBACK, SHORT_LIVED_JVM, jvm_reason, quiet_pyspark

TIMEOUT_SECONDS = 60.0
"""Time for all texts together. A text that takes longer gets no verdict."""

GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
PARSER = "org.apache.spark.sql.execution.SparkSqlParser"
SETTINGS = "org.apache.spark.sql.internal.SQLConf"

OWN_SETTINGS = {"spark.sql.variable.substitute": "false"}
"""As in sqlstream's sessions, `${...}` is plain text."""

TOO_COMPLEX = ("FAILED_TO_PARSE_TOO_COMPLEX", "PARSER_STACK_OVERFLOW")
"""Conditions that depend on the size of the stack, so the text may still be valid."""

STACK_OVERFLOW = "java.lang.StackOverflowError"


@contextmanager
def spark_parser(java: JavaRuntime, env: Mapping[str, str], settings: Mapping[str, str]) -> Iterator[ParseWithSpark]:
    """Yields a function that parses a text as a session with the SQL `settings` would.

    Raises: ParserUnavailableError if the JVM does not start, or ends.
    """
    with (
        quiet_pyspark(),
        tempfile.TemporaryDirectory(prefix="sqlstream-") as folder,
        (Path(folder) / "log").open("w+b") as log,
    ):
        ready = Path(folder) / "gateway"
        local = {"SPARK_LOCAL_IP": LOOPBACK, **env}
        process = start_gateway(_command(java.path, env), ready, local, stderr=log, stdout=log)
        limit = threading.Timer(TIMEOUT_SECONDS, process.kill)
        limit.start()
        try:
            yield _parse_with(_gateway(process, ready), {**OWN_SETTINGS, **settings})
        except (AttributeError, TypeError, *JVM_ERRORS) as error:
            if not isinstance(error, JVM_ERRORS) and not is_missing(error):
                raise
            raise ParserUnavailableError(_reason(log)) from error
        finally:
            limit.cancel()
            process.kill()
            process.wait()


def _command(java: str, env: Mapping[str, str]) -> list[str]:
    """Returns the command of the JVM. The class path is that of spark-submit, so that the class archive matches."""
    home = Path(_find_spark_home())
    first = [str(jar) for jar in (home / "jars").glob("slf4j-api-*.jar")]
    class_path = os.pathsep.join([str(home / "conf"), *first, str(home / "jars" / "*")])
    return [java, *SHORT_LIVED_JVM.split(), *use_options(env, keep=False).split(), "-cp", class_path, GATEWAY]


def _gateway(process: subprocess.Popen[bytes], ready: Path) -> Any:
    """Returns py4j's gateway to the JVM when it is ready. Raises: ConnectionError if it ends before."""
    while not ready.exists():
        if process.poll() is not None:
            raise ConnectionError
        time.sleep(POLL_SECONDS)
    return connect(ready)


def _reason(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").splitlines()
    reason = jvm_reason(lines) or (lines[-1] if lines else "")
    return "its Java process ended" + (f": {reason}" if reason else "")


def _parse_with(gateway: Any, settings: Mapping[str, str]) -> ParseWithSpark:
    conf = getattr(gateway.jvm, SETTINGS).get()
    for name, value in settings.items():
        with suppress(*JVM_ERRORS):  # the start of a session reports an invalid value
            call_in_other_jvm(conf.setConfString, name, value)
    parse_plan = getattr(gateway.jvm, PARSER)().parsePlan
    return _parse_function(lambda sql: call_in_other_jvm(parse_plan, sql))


def _parse_function(parse_plan: Callable[[str], object]) -> ParseWithSpark:
    def parse(sql: str) -> SyntaxRefusal | None:
        try:
            parse_plan(sql)
        except JVM_ERRORS as error:
            if is_jvm_gone(error) or is_missing(error):
                raise
            refusal = read_error(error, sql)
            if refusal.condition in TOO_COMPLEX or any(cause.kind == STACK_OVERFLOW for cause in causes_of(error)):
                return None
            return SyntaxRefusal(refusal.message, refusal.condition, refusal.offset)
        return None

    return parse
