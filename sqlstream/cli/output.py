"""How commands print: results on stdout, as text or JSON; warnings beside them on stderr; the lines of a run."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import click

from sqlstream.errors import Finding, FindingsError
from sqlstream.report.findings import findings_text, refusal_json
from sqlstream.spark.secrets import Secrets

Command = TypeVar("Command", bound=Callable[..., Any])

DONE, FAILED, UNUSABLE = 0, 1, 2
"""Exit codes: done; the user's project or queries failed; bad usage or an unexpected fault (dbt's)."""


def output_option(described: str) -> Callable[[Command], Command]:
    """Returns the decorator that adds `--output text|json`, with what the two mean as help."""
    return click.option("--output", type=click.Choice(["text", "json"]), default="text", help=described)


@contextmanager
def refusals_printed(output: str, debug: bool) -> Iterator[None]:
    """Prints the findings that end a command as JSON on stdout, where `output` is json; `main` prints them as text."""
    try:
        yield
    except FindingsError as error:
        if output != "json":
            raise
        click.echo(refusal_json(error.findings))
        if debug:
            echo_trace()
        raise click.exceptions.Exit(FAILED) from error


def echo_warnings(warnings: Sequence[Finding]) -> None:
    """Prints the warnings beside a result: on stderr, since stdout holds the result alone."""
    if warnings:
        click.echo(findings_text(warnings), err=True)


def echo_progress(line: str) -> None:
    """Prints what a command is doing on stderr: it is no part of its result."""
    click.echo(line, err=True)


def echo_trace() -> None:
    """Prints on stderr where the exception that is being handled happened, without secrets."""
    click.echo(redacted(traceback.format_exc()), err=True)


def redacted(text: str) -> str:
    """Returns `text` without the secrets of the environment."""
    return Secrets(os.environ).redact(text)


class RunLines:
    """Prints the lines of a run on stdout for as long as somebody reads them, and then drops them.

    Queries run on when a terminal is closed or `head` has seen enough: an error while a line is printed would end them
    in the middle of a batch.
    """

    def __init__(self) -> None:
        self._read = True

    def __call__(self, line: str) -> None:
        """Prints `line`, or drops it."""
        if not self._read:
            return
        try:
            click.echo(line)
        except OSError:
            self._read = False
            _discard_stdout()


class RunScreen(io.TextIOBase):
    """The terminal that a live table is drawn on; what cannot be drawn, as it is closed, is dropped."""

    def __init__(self) -> None:
        self._read = True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of stdout."""
        return sys.stdout.encoding

    def isatty(self) -> bool:
        """Whether it is a terminal, which it is made for."""
        return True

    def write(self, text: str) -> int:
        """Draws `text`, or drops it."""
        self._try(lambda: sys.stdout.write(text))
        return len(text)

    def flush(self) -> None:
        """Shows what has been drawn."""
        self._try(sys.stdout.flush)

    def _try(self, act: Callable[[], object]) -> None:
        if not self._read:
            return
        try:
            act()
        except OSError:
            self._read = False
            _discard_stdout()


def is_screen() -> bool:
    """Returns whether stdout is a terminal on which a table can be redrawn."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")


def _discard_stdout() -> None:
    """Lets stdout lead nowhere, so that what is left in its buffer fails no more when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):  # a replaced stdout may have no descriptor
        os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
