"""How commands print: results on stdout as text or JSON, warnings and progress on stderr, and the lines of a run."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO, TypeVar

import click

from sqlstream.errors import Finding, FindingsError
from sqlstream.report.findings import findings_text, refusal_json
from sqlstream.spark.secrets import Secrets

Command = TypeVar("Command", bound=Callable[..., Any])

DONE, FAILED, UNUSABLE = 0, 1, 2
"""Exit codes, as in dbt: success; an error in the project or a failed query; bad usage or an unexpected error."""


def output_option(described: str) -> Callable[[Command], Command]:
    """Returns the decorator that adds `--output text|json`, with `described` as help."""
    return click.option("--output", type=click.Choice(["text", "json"]), default="text", help=described)


@contextmanager
def refusals_printed(
    output: str, debug: bool, as_json: Callable[[Sequence[Finding]], str] = refusal_json
) -> Iterator[None]:
    """Prints findings that end the command as JSON if `output` is json; otherwise `main` prints them as text."""
    try:
        yield
    except FindingsError as error:
        if output != "json":
            raise
        click.echo(as_json(error.findings))
        if debug:
            echo_trace()
        raise click.exceptions.Exit(FAILED) from error


def echo_warnings(warnings: Sequence[Finding]) -> None:
    """Prints warnings on stderr: stdout holds only the result."""
    if warnings:
        click.echo(findings_text(warnings), err=True)


def echo_progress(line: str) -> None:
    """Prints on stderr what the command is doing."""
    click.echo(line, err=True)


def echo_trace() -> None:
    """Prints the traceback of the current exception on stderr, without secrets."""
    click.echo(redacted(traceback.format_exc()), err=True)


def redacted(text: str) -> str:
    """Returns `text` without the secrets of the environment."""
    return Secrets(os.environ).redact(text)


class RunLines:
    """Prints the lines of a run on stdout, or stderr, while it can be written, and then drops them.

    Queries continue when the terminal is closed or `head` ends: an error on printing a line would stop them in the
    middle of a batch.
    """

    def __init__(self, *, to_stderr: bool = False) -> None:
        self._read, self._to_stderr = True, to_stderr

    def __call__(self, line: str) -> None:
        """Prints `line`, or drops it if nothing can be printed."""
        if not self._read:
            return
        try:
            click.echo(line, err=self._to_stderr)
        except OSError:
            self._read = False
            _discard(sys.stderr if self._to_stderr else sys.stdout)


class RunScreen(io.TextIOBase):
    """The terminal for a live table. Output is dropped once the terminal is closed."""

    def __init__(self) -> None:
        self._read = True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of stdout."""
        return sys.stdout.encoding

    def isatty(self) -> bool:
        """Returns True: rich then redraws the table in place."""
        return True

    def write(self, text: str) -> int:
        """Writes `text`, or drops it if the terminal is closed."""
        self._try(lambda: sys.stdout.write(text))
        return len(text)

    def flush(self) -> None:
        """Flushes what was written."""
        self._try(sys.stdout.flush)

    def _try(self, act: Callable[[], object]) -> None:
        if not self._read:
            return
        try:
            act()
        except OSError:
            self._read = False
            _discard(sys.stdout)


def is_screen() -> bool:
    """Returns whether stdout is a terminal on which a table can be redrawn."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def _discard(stream: TextIO) -> None:
    """Redirects `stream` to the null device, so that flushing its buffer does not fail when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):  # a replaced stdout may have no descriptor
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
