"""Parallel work gives the same result as work on one core, and leaves no process behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from generate import CHAIN, write_sqlstream_project

from sqlstream.app.loading.processes import Processes
from sqlstream.compiler.cache.memory import Entries, Memory
from sqlstream.compiler.compile import compile_project
from sqlstream.compiler.compiled import CompileResult
from sqlstream.compiler.render.values import RenderOptions
from sqlstream.compiler.render.yaml import make_yaml_renderer
from sqlstream.compiler.work_ahead import (
    MODELS_IN_A_PART,
    MODELS_WORTH_A_RENDERER,
    MODELS_WORTH_A_WORKER,
    WorkAhead,
    Workers,
    share_graph,
)
from sqlstream.project.loading import load_project

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot copy a process")


def compiled(root: Path, workers: Workers | None) -> tuple[CompileResult, Memory, list[str]]:
    """Compiles a project with this number of workers; returns the result, the memory and the logged messages."""
    project = load_project(root, make_render=make_yaml_renderer({}), target=None, cli_vars={}).project
    assert project is not None
    logged: list[str] = []
    options = RenderOptions(
        variables=project.vars,
        env={},
        target=project.target,
        project_name=project.name,
        run_started_at=datetime(2026, 1, 2, tzinfo=UTC),
        invocation_id="1",
        log=lambda message, _: logged.append(message),
    )
    memory = Memory()
    ahead = WorkAhead(project, options, memory, workers) if workers else None
    return compile_project(project, options, memory, ahead), memory, logged


def test_workers_change_nothing(tmp_path: Path) -> None:
    """Workers give the same models, columns and findings in order; templates log each message once and in order."""
    write_sqlstream_project(tmp_path, 2 * MODELS_WORTH_A_RENDERER + CHAIN)
    for number, path in enumerate(sorted((tmp_path / "models").rglob("*_enrich_*.sql"))):
        prefix = f"{{{{ log('model {number}') }}}}{{{{ exceptions.warn('look at {number}') }}}}-- odd\n"
        path.write_text(prefix + path.read_text().replace("-- Adds", "/* + BROADCAST(d) */ -- Adds"))
    alone, remembered_alone, logged_alone = compiled(tmp_path, None)
    together, remembered, logged = compiled(tmp_path, Processes(2))
    assert alone.compiled is not None
    assert together.compiled is not None
    assert together.findings == alone.findings
    assert len(alone.findings) > CHAIN
    assert together.compiled.models == alone.compiled.models
    assert together.compiled.columns == alone.compiled.columns
    assert logged == logged_alone
    assert remembered.new.keys() == remembered_alone.new.keys()


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, ValueError])
def test_background_work_ends_with_the_body(end: type[BaseException]) -> None:
    """Background work ends with the body, for whatever reason, even if nobody waits; failed work gives nothing."""
    before = children()
    with pytest.raises(end), Processes(2).beside(lambda: signal.pause()):
        raise end
    with Processes(2).beside(failing) as failed, Processes(2).beside(killed) as gone:
        assert (failed(), gone()) == (None, None)
    assert children() == before


def entry(text: str) -> Entries:
    """Returns one entry."""
    return {("kind", text): ("key", text)}


def failing() -> Entries:
    """Raises an error."""
    raise ValueError("no")


TESTS = os.getpid()
"""The process of the tests, which also takes jobs."""


def killed() -> Entries:
    """Kills its process, unless that is the process of the tests."""
    if os.getpid() == TESTS:
        raise ValueError("this process goes on")
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


@pytest.mark.parametrize("bad", [failing, killed])
def test_a_job_that_fails_gives_nothing(bad: Callable[[], Entries], capfd: pytest.CaptureFixture[str]) -> None:
    """A failed job gives nothing and prints nothing, and the other jobs return their results."""
    jobs = [lambda: entry("a"), bad, lambda: entry("x" * 1_000_000)]
    assert list(Processes(3).run(jobs)) == [entry("a"), entry("x" * 1_000_000)]
    assert capfd.readouterr().err == ""


def children() -> set[str]:
    """Returns the ids of the child processes that this process has not waited for."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="utf-8").split())


def test_no_process_outlives_the_work() -> None:
    """Worker processes end when the work is left early, as by Ctrl-C."""

    def interrupted() -> Entries:
        raise KeyboardInterrupt

    def endless() -> Entries:
        signal.pause()
        return {}

    before = children()
    with pytest.raises(KeyboardInterrupt):
        list(Processes(2).run([interrupted, endless]))
    assert children() == before


def test_parts_of_a_graph_contain_their_inputs() -> None:
    """Each part has everything that its models read. The rest is split into ever smaller parts, so that all workers end
    together; a graph in which most models are connected gives one part.
    """
    chains = {
        f"{chain}-{position}": {f"{chain}-{position - 1}"} if position else set()
        for chain in range(400)
        for position in range(10)
    }
    parts = share_graph(chains, list(chains), Processes(2))
    sizes = list(map(len, parts))
    assert sum(sizes) == len(chains)
    assert sizes[0] == MODELS_IN_A_PART
    assert sizes[-2] == MODELS_WORTH_A_WORKER
    assert sizes == sorted(sizes, reverse=True)
    assert all(chains[name] <= set(part) for part in parts for name in part)
    line = {str(number): ({str(number - 1)} if number else set()) for number in range(200)}
    assert len(share_graph(line, list(line), Processes(2))) == 1


def test_parts_count_only_new_models() -> None:
    """Each part contains everything that its models read; a shared input does not give each reader its own part."""
    count = 2 * MODELS_IN_A_PART
    hub: dict[str, set[str]] = {"hub": set()}
    graph = hub | {f"leaf {number}": {"hub"} for number in range(count)}
    found = share_graph(graph, list(graph), Processes(2))
    assert set().union(*found) == set(graph)
    assert all(graph[name] <= set(part) for part in found for name in part)
    assert len(found) <= count // MODELS_WORTH_A_WORKER
    wide = {f"part {number}": set[str]() for number in range(count)}
    wide["hub"] = set(wide)
    assert len(share_graph(graph | wide, list(graph | wide), Processes(2))) == 1
