"""The lock of a query while a run has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class LockedError(Exception):
    """Another process has locked the query; the message names it."""


class LockLostError(Exception):
    """The run has lost its lock, and must not write any more; the message says why."""


class HeldLock(Protocol):
    """A lock that this process has. On some storage it can be lost: another run takes over from one that stalls."""

    @property
    def lost(self) -> str | None:
        """Why the lock is lost, None while it is not."""

    def renew(self) -> None:
        """Asks the storage whether the lock is lost, and renews it."""

    def confirm(self) -> None:
        """Checks that no other run can have the lock. Fast if it was renewed recently. Raises: LockLostError."""

    def when_lost(self, stop: Callable[[], None]) -> None:
        """Calls `stop` once the lock is lost, in another thread. Replaces the function of an earlier call."""


class KeptLock:
    """A lock that cannot be lost: the operating system keeps it until the process ends."""

    lost = None

    def renew(self) -> None:
        """Does nothing."""

    def confirm(self) -> None:
        """Does nothing."""

    def when_lost(self, stop: Callable[[], None]) -> None:
        """Does nothing."""
