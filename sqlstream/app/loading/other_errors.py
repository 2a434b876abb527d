"""Errors of a project that are about something else than what was selected: they are counted, and block nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from sqlstream.app.loading.load import Loaded, LoadOutcome
from sqlstream.app.loading.selected_findings import findings_of_selection
from sqlstream.app.request import EVERYTHING, Selection
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.wording import counted


@contextmanager
def with_errors_of(attempted: LoadOutcome, selection: Selection) -> Iterator[None]:
    """Adds the errors of the project to those of a selection in the body: what is not found may stand in a broken file.

    Where nothing was asked for, the errors of the project are the cause. Raises: FindingsError.
    """
    try:
        yield
    except FindingsError as error:
        if attempted.errors and selection == EVERYTHING:
            raise FindingsError(attempted.findings) from error
        raise FindingsError((*attempted.errors, *error.findings)) from error


def refuse_selected(
    attempted: LoadOutcome, loaded: Loaded, chosen: Collection[str], notify: Callable[[str], None]
) -> None:
    """Tells how many errors belong to none of the `chosen` nodes.

    Raises: FindingsError where an error belongs to what is chosen, to what that reads, or to the project as a whole.
    """
    errors = errors_of_selection(attempted, loaded, chosen)
    if errors:
        warnings = findings_of_selection(loaded.compiled, loaded.findings, chosen)
        raise FindingsError((*errors, *warnings))
    if attempted.errors:
        notify(errors_elsewhere(len(attempted.errors)))


def errors_of_selection(attempted: LoadOutcome, loaded: Loaded, chosen: Collection[str]) -> tuple[Finding, ...]:
    """Returns the errors that belong to what is chosen, to what that reads, or to the project as a whole."""
    return findings_of_selection(loaded.compiled, attempted.errors, chosen)


def errors_elsewhere(count: int) -> str:
    """Returns the line about `count` errors that are in the way of nothing."""
    return f"{counted(count, 'error')} in models that are not selected; `sqlstream compile` shows them"
