"""The project that `make bench-nexmark` measures compiles without findings, and its events are the same each time."""

from __future__ import annotations

from pathlib import Path

from benchmarks.nexmark.generator import events
from benchmarks.nexmark.queries import TRIGGER, copy_project
from sqlstream.app.compile.compile import compile_models
from sqlstream.app.request import ProjectRequest


def test_the_queries_compile_without_findings(tmp_path: Path) -> None:
    """All queries but Nexmark's q4 and q6, which Spark cannot stream, compile without findings."""
    project = copy_project(tmp_path / "nexmark")
    assert TRIGGER in (project / "project.yml").read_text()
    compiled = compile_models(ProjectRequest(project))
    assert compiled.findings == ()
    queries = {model.name for model in compiled.models if model.output is not None}
    assert queries == {f"q{number}" for number in range(23)} - {"q4", "q6"}


def test_the_events_follow_the_proportions_and_the_seed() -> None:
    """Of fifty events one is a person, three are auctions and the others bids; the seed alone decides their values."""
    first = events(0, 5_000, seed=1)
    assert first == events(0, 5_000, seed=1)
    assert first != events(0, 5_000, seed=2)
    kinds = first["event_type"].to_pylist()
    assert [kinds.count(kind) for kind in range(3)] == [100, 300, 4_600]
    for kind, column in enumerate(("person", "auction", "bid")):
        assert [row is not None for row in first[column].to_pylist()] == [each == kind for each in kinds]


def test_auctions_and_bids_refer_to_earlier_events() -> None:
    """Each seller, bidder and auction is one of an event with a lower number, and no event is over a second late."""
    persons, auctions, newest = set(), set(), None
    for row in events(0, 20_000, seed=1).to_pylist():
        person, auction, bid = row["person"], row["auction"], row["bid"]
        if person:
            persons.add(person["id"])
        elif auction:
            auctions.add(auction["id"])
            assert auction["seller"] in persons
        else:
            assert bid["bidder"] in persons
            assert bid["auction"] in auctions
        newest = row["date_time"] if newest is None else max(newest, row["date_time"])
        assert (newest - row["date_time"]).total_seconds() <= 1
