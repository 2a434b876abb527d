"""The plain name of an output, which shows readers the current version of its query."""

from __future__ import annotations

from typing import Protocol


class CannotPublishError(Exception):
    """The storage cannot give readers one name, so they use the names of the versions. The message is one line."""


class NotWrittenError(CannotPublishError):
    """The version has no output yet."""


class Publication(Protocol):
    """One output of a query. Its plain name is the path or table of the sink.

    At first version 1 writes to the plain name itself. At the first switch its output gets the name of a version, too,
    and the plain name becomes a pointer. `versions.json` says which version is current and which names are pointers;
    it is written between `prepare` and `switch_to`. A command that is killed before leaves readers, and the writer of
    each version, as they were. After a kill behind it, the next command calls `switch_to` again.

    All methods can be repeated. `prepare` and `switch_to` are called while the command has the lock of the query's
    versions.
    """

    @property
    def name(self) -> str:
        """The path or table as the project declares it, which `Versions.published` contains."""

    @property
    def path(self) -> str:
        """The path or table that readers use: the plain name, complete."""

    @property
    def first_move(self) -> tuple[str, str]:
        """The plain name, and the name that the output of version 1 gets at the first switch, as words for messages."""

    def prepare(self, version: int, *, is_first: bool) -> None:
        """Does everything for a switch to `version` that readers do not notice.

        `is_first`: the plain name is no pointer yet. If version 1 exists, it is locked for this process, and its query
        writes to its new name as soon as `versions.json` contains the plain one.

        Raises: NotWrittenError if the version has no output yet; CannotPublishError if `is_first` and the storage
        cannot do it, without any change that readers or version 1 notice; OSError, errors of the database.
        """

    def is_shown(self, version: int) -> bool:
        """Returns whether the plain name points to `version`. Raises: OSError, errors of the database."""

    def switch_to(self, version: int) -> None:
        """Makes the plain name point to `version` in one step, so that readers see the old version or the new one.

        Completes an interrupted first switch: the output of version 1 may still have the plain name. Raises: OSError,
        errors of the database.
        """

    def keep_up(self, version: int) -> None:
        """Shows readers the batches that `version` has committed. The run of the version calls this before it starts,
        after each batch and when it ends, also for a version that is not current. Raises: OSError.
        """
