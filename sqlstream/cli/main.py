"""The `sqlstream` command: its group, and what becomes of errors."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from sqlstream.app.loading.garbage import collect_seldom
from sqlstream.cli.dbt_commands import HintingGroup
from sqlstream.cli.output import DONE, FAILED, UNUSABLE, echo_trace, redacted
from sqlstream.cli.words import join_selectors
from sqlstream.errors import FindingsError, UsageError
from sqlstream.report.findings import findings_text
from sqlstream.version import __version__

COMMANDS = (
    "init",
    "debug",
    "compile",
    "explain",
    "ls",
    "lineage",
    "show",
    "dev",
    "source",
    "test",
    "run",
    "status",
    "state",
    "clean",
)
"""In the order in which a newcomer meets them. Each is the one command in the module of its name."""

ALIASES = {"list": "ls"}
"""Other names of commands, which help does not list: dbt has both of these."""

OFF = ("", "0", "false", "f", "no", "n", "off")
"""What click reads as no in the environment variable of a flag."""


class _Commands(HintingGroup):
    """A group that loads a command when it is asked for, and lists the commands in their own order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of the commands."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command of that name, None where there is none."""
        del ctx
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        module = import_module(f"sqlstream.cli.commands.{name}")
        return next(value for value in vars(module).values() if isinstance(value, click.Command))


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Create a project: sqlstream init NAME. Show the options of a command: sqlstream COMMAND --help. "
    "Exit codes: 0 success, 1 error in the project or failed query, 2 invalid command line.",
)
@click.version_option(__version__, "--version", "-v", prog_name="sqlstream")
def cli() -> None:
    """Compile a folder of SQL models and run them as streams on Spark."""


def program() -> NoReturn:
    """The command `sqlstream` as a process: `main`, and its end.

    What compiling has made is left to the system, which takes it back at once; Python would take half a second to free
    the objects of a thousand models one by one. Where Spark was used, its own end is waited for.
    """
    logging.getLogger().addHandler(logging.NullHandler())  # py4j would print that a JVM is gone, also after the end
    try:
        main()
    except SystemExit as ended:
        if "pyspark" in sys.modules or not isinstance(ended.code, int):
            gc.freeze()  # Python looks for garbage at its end, among all that pandas has brought
            raise
        logging.shutdown()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # closed, or nobody reads it any more
            raise ended from None
        os._exit(ended.code)
    raise AssertionError("main() ends by SystemExit")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits with 0, 1 or 2."""
    collect_seldom()
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
        click.echo("Stopped before any query started.", err=True)
        sys.exit(FAILED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone, as with `| head`; nobody is left to tell
        sys.exit(FAILED)
    except Exception as error:
        click.echo(redacted(f"Unexpected error: {type(error).__name__}: {error}"), err=True)
        click.echo("  This is a bug in sqlstream. Run again with --debug to see the traceback.", err=True)
        _trace(given)
        sys.exit(UNUSABLE)


def _trace(given: Sequence[str]) -> None:
    if "--debug" in given or os.environ.get("SQLSTREAM_DEBUG", "").lower() not in OFF:
        echo_trace()
