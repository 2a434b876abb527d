"""Runs Python models: calls the function once per query, and reports its errors at its own lines."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.python_models import FUNCTION, find_function, reference_calls
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.python_code import pickle_by_value
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.spark_errors import error_finding

REFERENCE_ARGUMENT = "reference"
"""The keyword argument with the number of a reference, added to the author's calls."""


class ModelInputs:
    """The first parameter of a Python model: its inputs as DataFrames, and the project's variables."""

    def __init__(self, frames: Sequence[DataFrame], variables: Mapping[str, object]) -> None:
        self._frames = frames
        self._variables = variables

    def ref(self, name: str, *, reference: int) -> DataFrame:  # noqa: ARG002 - the number identifies it
        """Returns the rows of the model or seed `name`."""
        return self._frames[reference]

    def source(self, source: str, table: str, *, reference: int) -> DataFrame:  # noqa: ARG002 - see `ref`
        """Returns the rows of a source table."""
        return self._frames[reference]

    def var(self, name: str, default: object = None) -> object:
        """Returns the value of a variable, or `default` if it is not set."""
        return self._variables.get(name, default)

    def config(self, **settings: object) -> None:
        """Does nothing: the compiler has read the model's configuration before."""


def run_python_model(
    model: CompiledModel, inputs: ModelInputs, session: SparkSession, root: Path, secrets: Secrets
) -> DataFrame:
    """Returns the DataFrame that the function of `model` returns for its `inputs`, in `session`.

    Its module runs again each time, under a name that cannot be imported, so that Spark sends its classes and
    functions to the workers. Raises: FindingsError, at the failed line of the model.
    """
    path = str(root / model.file.path)
    tree = ast.parse(model.file.text, path)
    function = find_function(tree)
    for number, call in enumerate(reference_calls(function) if function else ()):
        call.keywords.append(ast.keyword(REFERENCE_ARGUMENT, ast.Constant(number)))
    module: dict[str, object] = {"__name__": f"sqlstream_model_{model.name}", "__file__": path}
    try:
        exec(compile(ast.fix_missing_locations(tree), path, "exec"), module)  # noqa: S102 - it is the user's own model
        pickle_by_value()
        frame = module[FUNCTION](inputs, session)  # type: ignore[operator]
    except (Exception, SystemExit) as error:
        raise FindingsError([_failure(model, error, path, secrets)]) from error
    if not isinstance(frame, DataFrame):
        raise FindingsError([_not_a_frame(model, frame, function.lineno if function else 1)])
    return frame


def _failure(model: CompiledModel, error: BaseException, path: str, secrets: Secrets) -> Finding:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    place = Place(Location(model.file.path, (lines[-1] if lines else None) or 1))
    if isinstance(error, SPARK_ERRORS):
        what = f"Spark rejects what `{model.name}` does here"
        return error_finding(error, code="python-failed", what=what, place=place, secrets=secrets, fix="fix the model")
    return Finding(
        "python-failed",
        f"the Python code of `{model.name}` fails here",
        secrets.redact(f"{type(error).__name__}: {' '.join(str(error).split()) or 'without a message'}"),
        "fix the model",
        place.location,
    )


def _not_a_frame(model: CompiledModel, given: object, line: int) -> Finding:
    return Finding(
        "python-failed",
        f"`{model.name}` does not return a DataFrame",
        f"its function returns {'nothing' if given is None else type(given).__name__}",
        "return a DataFrame with the rows of the model",
        Location(model.file.path, line),
    )
