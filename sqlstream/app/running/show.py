"""The part of `show` and `dev` that needs Spark: a session that is kept warm, and asked for rows again and again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlstream.app.loading.load import Loaded
from sqlstream.app.loading.watching import Snapshot, take_snapshot
from sqlstream.app.running.session import check_java, check_target, start_brief_session
from sqlstream.app.running.signals import StopSignals
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.files.python_files import PYTHON
from sqlstream.spark.jvm.gateway import is_jvm_gone
from sqlstream.spark.jvm.session import SparkRuntime, stop_spark
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.preview import Preview, Samples
from sqlstream.spark.reading.python_code import register_functions
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.secrets import Secrets
from sqlstream.state.results.rows import ShownRows


class Previews:
    """Shows rows in one Spark, which is started when it is first needed, and anew where the target or the project's
    Python has changed.

    `notify` hears what takes its time; `warehouse` is the folder in which Spark may make its managed tables.
    """

    def __init__(
        self, env: Mapping[str, str], notify: Callable[[str], None], signals: StopSignals, warehouse: str
    ) -> None:
        self._env, self._notify, self._signals, self._warehouse = env, notify, signals, warehouse
        self._secrets = Secrets(env)
        self._runtime: SparkRuntime | None = None
        self._started_for: object = None
        self._samples = Samples(notify)

    def show(self, loaded: Loaded, nodes: Sequence[str], limit: int) -> tuple[ShownRows, ...]:
        """Returns the first rows of each of `nodes`. Raises: FindingsError with those of all nodes; StopAskedError."""
        readers = self._readers(loaded)
        preview = Preview(NodeReader(loaded.compiled, readers), self._samples, limit)
        shown: list[ShownRows] = []
        findings: list[Finding] = []
        for node in nodes:
            try:
                shown.append(preview.show(node))
            except FindingsError as error:
                findings += error.findings
                if error.__cause__ is not None and is_jvm_gone(error.__cause__):
                    self.close()  # the next call starts Spark again
                    break
        if findings:
            raise FindingsError(findings)
        return tuple(shown)

    def close(self) -> None:
        """Stops Spark, where it runs."""
        if self._runtime is not None:
            stop_spark(self._runtime)
        self._runtime = self._started_for = None

    def _readers(self, loaded: Loaded) -> Readers:
        project = loaded.compiled.project
        runtime = self._runtime
        needed = (project.target, project.functions, _python_files(project.root))
        if runtime is None or self._started_for != needed:
            self.close()
            runtime, self._started_for = self._start(loaded), needed
        return Readers(runtime.session, self._secrets, project.root)

    def _start(self, loaded: Loaded) -> SparkRuntime:
        check_target(loaded)
        check_java(self._env, self._signals)
        self._notify("Starting Spark")
        runtime = start_brief_session(loaded, self._secrets, self._warehouse)
        self._signals.install()
        self._runtime, self._samples = runtime, Samples(self._notify)
        register_functions(runtime.session, loaded.compiled.project.functions)
        return runtime


def _python_files(root: Path) -> Snapshot:
    """The state of the files of python/, of which Spark's workers have a copy."""
    return {path: state for path, state in take_snapshot(root).items() if path.startswith(f"{PYTHON}/")}


@contextmanager
def open_previews(env: Mapping[str, str], notify: Callable[[str], None], signals: StopSignals) -> Iterator[Previews]:
    """Gives previews over a Spark that leaves nothing behind, and stops it in the end."""
    with tempfile.TemporaryDirectory(prefix="sqlstream-show-", ignore_cleanup_errors=True) as warehouse:
        previews = Previews(env, notify, signals, warehouse)
        try:
            yield previews
        finally:
            previews.close()
