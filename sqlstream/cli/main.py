"""The `sqlstream` command: its subcommands, error messages and exit codes."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from sqlstream.cli.dbt_commands import HintingGroup
from sqlstream.cli.output import DONE, FAILED, UNUSABLE, echo_trace, redacted
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.report.findings import findings_text
from sqlstream.version import __version__

COMMANDS = {
    "init": "Create a project that runs without changes.",
    "debug": "Check Java, Spark, the target and write access.",
    "deps": "Download the jars of connectors, and pin them.",
    "compile": "Check the project and write the compiled SQL.",
    "explain": "Explain the code of a finding.",
    "ls": "List models, seeds, sources, exposures and unit tests.",
    "lineage": "Show the columns of a model and where they come from.",
    "show": "Show the first rows of models; starts no query.",
    "dev": "Show the first rows of models after each save.",
    "source": "Inspect sources.",
    "contract": "Export and import contracts of models.",
    "test": "Run the unit tests of models.",
    "plan": "Say what the next run does with each checkpoint.",
    "run": "Start models with a sink as streaming queries.",
    "submit": "Start the same run with its driver in the cluster.",
    "build": "Test models, and run the queries that end by themselves.",
    "retry": "Repeat what failed in the last command.",
    "status": "Show the state of queries and their checkpoints.",
    "ui": "Show the runs and queries of the project on a page.",
    "replay": "Show what a past batch read and returned.",
    "backfill": "Write history that a stream has left out.",
    "quarantine": "Show and release rows that violate a data test.",
    "promote": "Make the parallel version of a query the current one.",
    "rollback": "Go back to the previous version of a query.",
    "path": "Print where readers find the rows of a model.",
    "maintain": "Compact the tables and files of sinks.",
    "docs": "Generate and serve the documentation site.",
    "state": "Inspect and repair a query's checkpoint and output.",
    "clean": "Remove target/, but not outputs and checkpoints.",
}
"""The commands, each with its line in the help of `sqlstream`, in the order in which a newcomer needs them. Each is the
only command in the module with its name.
"""

OF_ONE_QUERY = frozenset({"replay", "backfill", "quarantine", "promote", "rollback", "path", "state"})
"""The commands in the folder `queries/`."""

ALIASES = {"list": "ls"}
"""Other names of commands, not listed in the help. dbt accepts both names."""

OFF = ("", "0", "false", "f", "no", "n", "off")
"""The values that click reads as false in the environment variable of a flag."""

SELECTOR_FLAGS = frozenset(
    {"-s", "--select", "--exclude", "-m", "--models", "--accept-state-change", "--migrate", "--parallel"}
)


class _Commands(HintingGroup):
    """A group that imports a command only when it is used, and not to list it in the help or in a completion."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of the commands."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns the command with that name, None if it does not exist."""
        del ctx
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        folder = "commands.queries" if name in OF_ONE_QUERY else "commands"
        module = import_module(f"sqlstream.cli.{folder}.{name}")
        return next(value for value in vars(module).values() if isinstance(value, click.Command))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands into the help."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Returns the commands and options that begin with `incomplete`."""
        commands = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]


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
    """Runs `main`, which ends the process."""
    logging.getLogger().addHandler(logging.NullHandler())  # py4j would log that the JVM is gone, even after the end
    # A compilation keeps most of the objects that it creates. With Python's default of 700, looking for garbage among
    # them takes a tenth of the time of a large project.
    gc.set_threshold(100_000)
    try:
        main()
    finally:
        gc.freeze()  # otherwise Python looks for garbage once more at the end: a tenth of an unchanged compilation
    raise AssertionError("main() ends by SystemExit")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses and runs the command line, and exits with 0, 1 or 2."""
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
        sys.stderr.close()  # the reader of stdout has ended, as `| head` does
        sys.exit(FAILED)
    except Exception as error:
        unusable = _unusable_pyspark(error)
        if unusable is not None:
            click.echo(findings_text([unusable]), err=True)
        else:
            click.echo(redacted(f"Unexpected error: {type(error).__name__}: {error}"), err=True)
            click.echo("  This is a bug in sqlstream. Run again with --debug to see the traceback.", err=True)
        _trace(given)
        sys.exit(UNUSABLE if unusable is None else FAILED)


def _unusable_pyspark(error: Exception) -> Finding | None:
    """Returns why PySpark could not be imported, None if `error` has another reason."""
    if not isinstance(error, ImportError) or str(error.name).partition(".")[0] not in ("pyspark", "py4j"):
        return None
    from sqlstream.spark.jvm.pyspark_package import check_pyspark

    return check_pyspark()


def _trace(given: Sequence[str]) -> None:
    if "--debug" in given or os.environ.get("SQLSTREAM_DEBUG", "").lower() not in OFF:
        echo_trace()


def join_selectors(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments with the words after a selector flag joined by spaces.

    This makes dbt's `--select a b` and `--select=a b` work without quotes: no command with selectors has positional
    arguments.
    """
    joined: list[str] = []
    selecting = False
    for argument in arguments:
        is_word = not argument.startswith("-")
        if selecting and is_word and joined[-1] not in SELECTOR_FLAGS:
            joined[-1] = f"{joined[-1]} {argument}"
        else:
            joined.append(argument)
        selecting = selecting if is_word else argument.split("=", 1)[0] in SELECTOR_FLAGS
    return joined
