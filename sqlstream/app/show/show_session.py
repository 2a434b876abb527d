"""The part of `show` and `dev` that needs Spark: a session that stays open and shows rows again and again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from sqlstream.app.loading.load import Loaded
from sqlstream.app.loading.watching import Snapshot, take_snapshot
from sqlstream.app.session.session import spark_session, starting_text
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.stored.stored_outputs import StoredOutputs
from sqlstream.compiler.connectors import needed_connectors
from sqlstream.errors import FindingsError
from sqlstream.project.files.python_files import PYTHON
from sqlstream.spark.jvm.gateway import is_jvm_gone
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.preview import Preview, SourceSamples
from sqlstream.spark.reading.python_code import register_functions
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.secrets import Secrets
from sqlstream.state.shown_rows import ShownRows


class Previews:
    """Shows rows with one Spark session. It starts when it is first needed, and restarts if the target or the project's
    Python files change.

    `notify` gets progress messages.
    """

    def __init__(self, env: Mapping[str, str], notify: Callable[[str], None], signals: StopSignals) -> None:
        self._notify, self._signals = notify, signals
        self._secrets = Secrets(env)
        self._running = ExitStack()
        self._runtime: SparkRuntime | None = None
        self._started_for: object = None
        self._samples = SourceSamples(notify)

    def show(self, loaded: Loaded, nodes: Sequence[str], limit: int) -> tuple[ShownRows, ...]:
        """Returns the first rows of each of `nodes`.

        Raises: FindingsError with the findings of all nodes; StopRequestedError.
        """
        readers = self._readers(loaded)
        compiled = StoredOutputs(loaded, readers.session, self._secrets, {}).resolve(nodes)
        preview = Preview(NodeReader(compiled, readers), self._samples, limit)
        shown: list[ShownRows] = []
        errors: list[FindingsError] = []
        for node in nodes:
            try:
                shown.append(preview.show(node))
            except FindingsError as error:
                errors.append(error)
            if errors and _is_spark_gone(errors[-1]):
                self.close()  # the next call starts Spark again
                break
        if errors:
            raise FindingsError(finding for error in errors for finding in error.findings)
        return tuple(shown)

    def close(self) -> None:
        """Stops Spark if it runs."""
        self._running.close()
        self._runtime = self._started_for = None

    def _readers(self, loaded: Loaded) -> Readers:
        project = loaded.compiled.project
        runtime = self._runtime
        connectors = tuple(needed_connectors(loaded.compiled))
        needed = (project.target, project.functions, _python_files(project.root), connectors)
        if runtime is None or self._started_for != needed:
            self.close()
            runtime, self._started_for = self._start(loaded), needed
        return Readers(runtime.session, self._secrets, project.root)

    def _start(self, loaded: Loaded) -> SparkRuntime:
        starting = spark_session(
            loaded,
            self._secrets,
            self._signals,
            notify=self._notify,
            notice=starting_text(loaded),
            over_connect=True,
        )
        runtime = self._running.enter_context(starting)
        self._runtime, self._samples = runtime, SourceSamples(self._notify)
        register_functions(runtime.session, loaded.compiled.project.functions)
        return runtime


def _is_spark_gone(error: FindingsError) -> bool:
    return error.__cause__ is not None and is_jvm_gone(error.__cause__)


def _python_files(root: Path) -> Snapshot:
    """Returns the states of the files in python/, which Spark's workers have copies of."""
    return {path: state for path, state in take_snapshot(root).items() if path.startswith(f"{PYTHON}/")}
