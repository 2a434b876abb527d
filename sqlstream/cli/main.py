"""The `sqlstream` command: its group, and what becomes of errors."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click

from sqlstream.cli.clean import clean
from sqlstream.cli.compile import compile_
from sqlstream.cli.debug import debug
from sqlstream.cli.init import init
from sqlstream.cli.ls import ls
from sqlstream.cli.run import run
from sqlstream.cli.words import join_selectors
from sqlstream.errors import FindingsError, UsageError
from sqlstream.report.findings import findings_text
from sqlstream.spark.secrets import Secrets
from sqlstream.version import __version__

DONE, FAILED, UNUSABLE = 0, 1, 2
"""Exit codes: done; the user's project or queries failed; bad usage or an unexpected fault (dbt's)."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "--version", "-v", prog_name="sqlstream")
def cli() -> None:
    """SQL-first streaming on Spark: a folder of SQL models compiles and runs as streams."""


for command in (init, debug, compile_, ls, run, clean):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits with 0, 1 or 2."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = cli.main(join_selectors(given), prog_name="sqlstream", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else DONE)
    except FindingsError as error:
        click.echo(findings_text(error.findings), err=True)
        _trace(given)
        sys.exit(FAILED)
    except UsageError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(UNUSABLE)
    except click.ClickException as error:
        error.show()
        sys.exit(UNUSABLE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped before any query was started.", err=True)
        sys.exit(FAILED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone, as with `| head`; nobody is left to tell
        sys.exit(FAILED)
    except Exception as error:
        click.echo(_redacted(f"Unexpected fault: {type(error).__name__}: {error}"), err=True)
        click.echo("  This is a bug in sqlstream. Run again with --debug to see where it happened.", err=True)
        _trace(given)
        sys.exit(UNUSABLE)


def _trace(given: Sequence[str]) -> None:
    if "--debug" in given or os.environ.get("SQLSTREAM_DEBUG"):
        click.echo(_redacted(traceback.format_exc()), err=True)


def _redacted(text: str) -> str:
    return Secrets(os.environ).redact(text)
