"""The life of the JVM: launched so that no signal and no secret reaches it, and forgotten when it is gone."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from sqlstream.project.values import SECRET_PREFIX

STDERR = 2
"""The descriptor: `sys.stderr` may be replaced by what has none."""


def launch_jvm(conf: SparkConf, on_stderr: Callable[[str], None], console_to_stderr: bool = False) -> Any:
    """Starts the JVM so that it outlives Ctrl-C, SIGTERM and SIGHUP, and returns py4j's gateway.

    A process started while a signal is ignored ignores it for good, and so do its Python workers: sent to the whole
    process group, a signal then stops no batch in the middle. Each line that the JVM writes to stderr goes to
    `on_stderr`, in a thread. Neither the JVM nor its workers get the secrets of the environment: SQL can read an
    environment, with `reflect` for one. Console sinks print to the JVM's stdout, which is this process's own, or its
    stderr with `console_to_stderr`. Over Connect: the server is not ours to start.
    """
    read_end, write_end = os.pipe()
    arguments = _PopenArguments({"stderr": write_end, "stdout": STDERR if console_to_stderr else None})
    try:
        with _without_secrets():
            gateway = launch_gateway(conf, popen_kwargs=arguments)  # type: ignore[no-untyped-call]
    except Exception:
        os.close(write_end)
        _read_lines(read_end, on_stderr)  # to its end: it holds the reason
        raise
    os.close(write_end)
    threading.Thread(target=_read_lines, args=(read_end, on_stderr), name="jvm-stderr", daemon=True).start()
    return gateway


def forget_jvm() -> None:
    """Lets the next start of Spark in this process launch a JVM of its own: the one that PySpark holds is gone."""
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


class _PopenArguments(dict[str, Any]):
    """The arguments that PySpark launches the JVM with: it puts in a `preexec_fn` of its own, which ignores Ctrl-C in
    the new process and which this makes ignore SIGTERM and SIGHUP too. This process ignores nothing: no signal is lost.
    """

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, _ignoring_others(value) if name == "preexec_fn" else value)


def _ignoring_others(prepare: Callable[[], None]) -> Callable[[], None]:
    def prepare_process() -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        prepare()

    return prepare_process


@contextmanager
def _without_secrets() -> Iterator[None]:
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(SECRET_PREFIX)}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _read_lines(descriptor: int, on_line: Callable[[str], None]) -> None:
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            on_line(line.rstrip("\n"))
