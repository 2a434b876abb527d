"""Spells: from when to when a user did one thing. The current one is kept as state, and given when it is over."""

from collections.abc import Iterator
from typing import NamedTuple

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

SILENCE = 10 * 60 * 1000
"""Milliseconds without a report after which a user's activity is over."""


class Spell(NamedTuple):
    """What a user does, from the first to the last report of it, in milliseconds since 1970."""

    activity: str
    first: int
    last: int
    reports: int


class Spells(StatefulProcessor):
    """Per user: the current spell, and the reports that the watermark has not passed yet.

    Reports wait for the watermark, so that one that comes late falls into its place. Timers stand at the time of each
    waiting report, and where the silence after the last report of the current spell is long enough to end it.
    """

    def init(self, handle):
        """Declare the state; called before the rows of each batch, also of the first one after a restart."""
        self.handle = handle
        self.waiting = handle.getMapState("waiting", "at long", "activity string")
        self.current = handle.getValueState("current", "activity string, first long, last long, reports int")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:
        """Keep a user's reports of this batch until the watermark has passed them."""
        for row in rows:
            self.waiting.updateValue((row.at,), (row.activity,))
            self.handle.registerTimer(row.at)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo) -> Iterator[Row]:
        """Take the reports that the watermark has passed, in their order, and give the spells that ended by then."""
        watermark = timerValues.getCurrentWatermarkInMs()
        spell = Spell(*self.current.get()) if self.current.exists() else None
        for at, activity in self.take_waiting(watermark):
            if spell and at - spell.last >= SILENCE:
                yield ended(key, spell, "silence")
                spell = None
            if spell and activity != spell.activity:
                yield ended(key, spell, activity)
                spell = None
            spell = Spell(activity, spell.first, at, spell.reports + 1) if spell else Spell(activity, at, at, 1)
        if spell and watermark - spell.last >= SILENCE:
            yield ended(key, spell, "silence")
            spell = None
        self.keep(spell)

    def take_waiting(self, watermark: int) -> list[tuple[int, str]]:
        """Remove and return the reports up to the watermark, oldest first."""
        passed = sorted((at[0], value[0]) for at, value in self.waiting.iterator() if at[0] <= watermark)
        for at, _ in passed:
            self.waiting.removeKey((at,))
        return passed

    def keep(self, spell: Spell | None) -> None:
        """Keep the current spell, if there is one, with the timer that would end it."""
        if spell:
            self.current.update(tuple(spell))
            self.handle.registerTimer(spell.last + SILENCE)
        else:
            self.current.clear()


def ended(key, spell: Spell, by: str) -> Row:
    """Return the row of a spell that is over."""
    return Row(user=key[0], **spell._asdict(), ended_by=by)


def model(sqlstream, spark):
    """Return the spells of all users, each when it is over."""
    sqlstream.config(sink="warehouse", output_mode="append")
    reports = sqlstream.ref("activity_reports").selectExpr("*", "unix_millis(event_time) as at")
    columns = "user string, activity string, first long, last long, reports int, ended_by string"
    spells = reports.groupBy("user").transformWithState(Spells(), columns, "append", "EventTime")
    first_and_last = ("timestamp_millis(first) as first_time", "timestamp_millis(last) as last_time")
    return spells.selectExpr("user", "activity", *first_and_last, "reports", "ended_by")
