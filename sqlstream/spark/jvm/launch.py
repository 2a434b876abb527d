"""Launches the JVM so that neither signals nor secrets reach it, and forgets it when it is gone.

Over Connect: not used.
"""

from __future__ import annotations

import atexit
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from sqlstream.project.secret_text import SECRET_PREFIX
from sqlstream.spark.jvm.jars import FILES_JAR
from sqlstream.spark.jvm.java import java_locale

STDERR = 2
"""The file descriptor: a program can replace `sys.stderr` by an object without one."""

POLL_SECONDS = 0.01
"""The interval of checks whether the JVM is ready."""

JARS = "spark.jars"
"""The setting with the jars that a JVM adds to its class path when it is launched, and never later."""

FILE_SYSTEM, LOCAL_FILES = "spark.hadoop.fs.file.impl", "sqlstream.LocalFiles"
"""The setting with the class for files of this machine, and sqlstream's own."""

CLASS_PATH = "SPARK_DIST_CLASSPATH"
"""The environment variable with what comes after Spark's jars in the class path. Spark itself uses files before it adds
the jars of `JARS`, and a class archive still fits when jars follow its own.
"""

IGNORED_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")

_CONNECTING = threading.Lock()
"""PySpark reads the port and the secret from the environment, which all threads share."""


def launch_jvm(conf: SparkConf, on_stderr: Callable[[str], None], console_to_stderr: bool = False) -> Any:
    """Starts a JVM that ignores Ctrl-C, SIGTERM and SIGHUP, and returns py4j's gateway.

    The JVM's Python workers ignore these signals too, so a signal to the whole process group interrupts no batch. A
    thread passes each line of the JVM's stderr to `on_stderr`. The JVM and its workers do not get the secrets of the
    environment, because SQL can read the environment, for example with `reflect`. Console sinks print to the JVM's
    stdout, which is this process's stdout, or its stderr with `console_to_stderr`.

    Raises: PySparkRuntimeError. Over Connect: the server runs already.
    """
    with _CONNECTING:
        if "PYSPARK_GATEWAY_PORT" in os.environ:  # another program, such as spark-submit, has started the JVM
            given = launch_gateway(conf)  # type: ignore[no-untyped-call]
            given.callback_server_parameters.propagate_java_exceptions = True  # see `java_exceptions`
            given.given = frozenset(name for name, _ in conf.getAll())
            return given
    read_end, write_end = os.pipe()
    reader = threading.Thread(target=_read_lines, args=(read_end, on_stderr), name="jvm-stderr", daemon=True)
    with tempfile.TemporaryDirectory(prefix="sqlstream-") as folder:
        ready = Path(folder) / "gateway"
        try:
            process = _start(conf, ready, stderr=write_end, stdout=STDERR if console_to_stderr else None)
        finally:
            # only the JVM has it open from now on, so the reader ends with the JVM
            os.close(write_end)
            reader.start()  # ends at once if the process did not start
        atexit.register(_end, process)
        try:
            gateway = _gateway(process, ready, reader)
        except BaseException:
            _end(process)
            raise
    gateway.proc = process
    gateway.jars = frozenset((*conf.get(JARS, "").split(","), *_class_path(conf)))
    gateway.callback_server_parameters.propagate_java_exceptions = True  # see `java_exceptions`
    gateway.given = frozenset(name for name, _ in conf.getAll())
    return gateway


def with_local_files(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns `settings` with the class `LOCAL_FILES` for files of this machine, unless they have another one, or the
    JVM may lack the class: another program launched it, or a spark-env.sh can replace the class path.
    """
    known = _known_jars()
    has_class = str(FILES_JAR) in known if known is not None else not has_jvm() and not spark_env_script().exists()
    return {FILE_SYSTEM: LOCAL_FILES, **settings} if has_class else dict(settings)


def has_jvm() -> bool:
    """Returns whether there is a JVM of this process already, perhaps one that another program launched."""
    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ  # noqa: SLF001


def spark_env_script(env: Mapping[str, str] = os.environ) -> Path:
    """Returns where the script is, if there is one, that sets the environment of Spark's JVM."""
    folder = env.get("SPARK_CONF_DIR") or Path(env.get("SPARK_HOME") or _find_spark_home(), "conf")
    return Path(folder, "spark-env.sh")


def _class_path(conf: SparkConf) -> tuple[str, ...]:
    """Returns what a JVM needs in its class path besides Spark's jars."""
    return (str(FILES_JAR),) if conf.get(FILE_SYSTEM, "") == LOCAL_FILES else ()


def _gateway(process: subprocess.Popen[bytes], ready: Path, reader: threading.Thread) -> Any:
    """Returns the gateway to the JVM when it is ready. Raises: PySparkRuntimeError."""
    # imports pandas, as PySpark's first call into the JVM would; it takes half as long as the start of the JVM
    import_module("pyspark.testing.utils")
    while not ready.exists():
        if process.poll() is not None:
            reader.join()  # it reads the reason
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        time.sleep(POLL_SECONDS)
    return connect(ready)


def _start(conf: SparkConf, ready: Path, *, stderr: int, stdout: int | None) -> subprocess.Popen[bytes]:
    """Starts the JVM as `pyspark.java_gateway.launch_gateway` does. The JVM writes `ready` when it accepts calls."""
    settings = [part for name, value in conf.getAll() for part in ("--conf", f"{name}={value}")]
    given = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    submit = [f"{_find_spark_home()}/bin/spark-submit", *settings, *given]
    class_path = [*filter(None, [os.environ.get(CLASS_PATH)]), *_class_path(conf)]
    env = {**os.environ, CLASS_PATH: os.pathsep.join(class_path)} if class_path else os.environ
    return start_gateway(submit, ready, env, stderr=stderr, stdout=stdout)


def start_gateway(
    command: Sequence[str],
    ready: Path,
    env: Mapping[str, str],
    *,
    stderr: int | IO[bytes],
    stdout: int | IO[bytes] | None,
) -> subprocess.Popen[bytes]:
    """Starts Spark's gateway process for Python, without the secrets of `env`. It writes `ready` when it accepts calls,
    ignores the signals that end this process, and ends when its stdin is closed. Its locale can name all files.
    """
    public = {name: value for name, value in env.items() if not name.startswith(SECRET_PREFIX)} | (java_locale() or {})
    return subprocess.Popen(  # noqa: S603 - Spark's own script, or the user's own Java
        command,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env={
            **public,
            "SPARK_CONNECT_MODE": "0",
            "_PYSPARK_DRIVER_CONN_INFO_PATH": str(ready),
        },
        preexec_fn=_ignore_signals,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Closes the JVM's stdin, which ends the JVM."""
    if process.stdin is not None:
        process.stdin.close()


def _ignore_signals() -> None:
    """Takes no locks: it runs in a fork of a process that may have threads."""
    for name in IGNORED_SIGNALS:
        signal.signal(getattr(signal, name), signal.SIG_IGN)


def connect(ready: Path) -> Any:
    """Returns py4j's gateway to the JVM that has written its port and secret to `ready`."""
    with ready.open("rb") as stream:
        port, secret = int(read_int(stream)), str(UTF8Deserializer().loads(stream))  # type: ignore[no-untyped-call]
    with _CONNECTING, environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
        return launch_gateway()  # type: ignore[no-untyped-call]


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Sets variables of the environment for the body, and restores that of the program at the end."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def end_jvm_without(jars: Sequence[str]) -> None:
    """Ends the JVM of an earlier session in this process if it was launched without one of `jars`.

    Call it only while no session runs. A JVM that another program launched stays.
    """
    known = _known_jars()
    if known is not None and not known.issuperset(jars):
        end_jvm()


def _known_jars() -> frozenset[str] | None:
    """Returns the jars of the JVM that sqlstream launched in this process, None without one."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001
    return None if gateway is None else vars(gateway).get("jars")  # getattr would ask the JVM for other names


def end_jvm() -> None:
    """Ends the JVM of an earlier session in this process, so that the next session starts one with its own options.

    Call it only while no session runs. A JVM that another program launched stays.
    """
    gateway: Any = SparkContext._gateway  # noqa: SLF001
    if _known_jars() is None:
        return
    gateway.shutdown()
    _end(gateway.proc)
    gateway.proc.wait()
    forget_jvm()


def forget_jvm() -> None:
    """Makes PySpark drop its JVM, which is gone, so that the next start of Spark in this process launches a new one."""
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001


def _read_lines(descriptor: int, on_line: Callable[[str], None]) -> None:
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as stream:
        for line in stream:
            on_line(line.rstrip("\n"))


AVRO_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{name}.maxLength={most}"
    for name, most in (("string", 100_000_000), ("bytes", 100_000_000), ("collectionItems", 10_000_000))
)
"""The JVM options with which Avro refuses damaged messages. Without them it allocates the gigabytes that a length in a
damaged message claims, which ends the JVM. By default a broker takes messages of 1 MB.
"""

_EXECUTORS = "spark.executor.extraJavaOptions"


def executor_limits(settings: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Returns the setting with the limits of executors, before the options in the target's `settings`."""
    return ((_EXECUTORS, f"{AVRO_LIMITS} {settings.get(_EXECUTORS, '')}".strip()),)
