"""The commands that need no Spark, from their arguments to their exit code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sqlstream.cli.duration import Duration
from sqlstream.cli.main import main

ROOT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples without their data, as the current folder."""
    for name in ("models", "macros", "seeds"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("project.yml", "sources.yml", "sinks.yml"):
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exit_code(*arguments: str) -> int:
    """Runs the command in this process and returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    "options",
    [
        ("--watch", "--update"),
        ("--record", "m", "--coverage"),
        ("--record", "m", "--junit-xml", "x.xml"),
        ("--data", "--watch"),
        ("--data", "--junit-xml", "x.xml"),
        ("--data", "--equivalence"),
        ("--store-failures",),
    ],
)
def test_options_of_test_that_exclude_each_other_are_refused(project: Path, options: tuple[str, ...]) -> None:
    """Options of `test` that exclude each other are refused, because one of them would have no effect."""
    assert exit_code("test", *options, "--project-dir", str(project)) == 2


def test_compile_writes_the_sql_and_the_manifest(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The compiled SQL is at dbt's paths, and the manifest has parents, children, sources and sinks."""
    assert exit_code("compile") == 0

    assert capsys.readouterr().out.startswith("Found 41 models, 16 sources, 7 sinks, 1 seed, 1 exposure\n")
    compiled = (project / "target/compiled/examples/models/cloudtrail/cloudtrail_hourly.sql").read_text()
    assert "cloudtrail_in_order WATERMARK event_time DELAY OF INTERVAL 10 MINUTES" in compiled
    manifest = json.loads((project / "target/manifest.json").read_text())
    hourly = "model.examples.cloudtrail_hourly"
    assert manifest["nodes"][hourly]["compiled_sql"] == compiled
    assert manifest["nodes"][hourly]["config"]["trigger"] == "10 seconds"
    assert manifest["parent_map"][hourly] == ["model.examples.cloudtrail_in_order"]
    assert hourly in manifest["child_map"]["model.examples.cloudtrail_in_order"]
    assert set(manifest["sinks"]) >= {"sink.examples.console", "sink.examples.results", "sink.examples.warehouse"}
    assert manifest["sources"]["source.examples.iot.signals"]["format"] == "json"


def test_compile_of_one_model_shows_its_sql(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`compile` of one model prints its SQL, as dbt does, and writes only that model's file."""
    assert exit_code("compile", "-s", "device_windows") == 0

    assert "from iot__signals WATERMARK event_time DELAY OF INTERVAL 10 MINUTES" in capsys.readouterr().out
    assert [path.name for path in (project / "target/compiled").rglob("*.sql")] == ["device_windows.sql"]


def test_compile_as_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON output has the SQL of each selected model and the warnings."""
    assert exit_code("compile", "--select", "wordcount", "nothing_such", "--output", "json") == 0

    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["succeeded"] is True
    assert [model["unique_id"] for model in found["models"]] == ["model.examples.word_counts"]
    assert [finding["code"] for finding in found["findings"]] == ["empty-selection"]
    assert printed.err == ""


@pytest.mark.parametrize("command", ["compile", "ls"])
def test_errors_are_json_too(project: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """With JSON output, errors are one object on stdout with exit code 1; --debug prints the traceback on stderr."""
    (project / "models/wrong.sql").write_text("select * from {{ ref('word_count') }}")

    assert exit_code(command, "--output", "json") == 1
    printed = capsys.readouterr()
    assert exit_code(command, "--output", "json", "--debug") == 1
    debugged = capsys.readouterr()

    found = json.loads(printed.out)
    assert found["succeeded"] is False
    assert [(finding["code"], finding["location"]["path"]) for finding in found["findings"]] == [
        ("unknown-ref", "models/wrong.sql")
    ]
    assert printed.err == ""
    assert debugged.out == printed.out
    assert "Traceback" in debugged.err


@pytest.mark.parametrize("command", ["compile", "ls"])
def test_warnings_in_text_go_to_stderr(project: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Warnings in text form go to stderr, so that stdout has only the result and can be piped."""
    assert exit_code(command, "--select", "wordcount", "nothing_such") == 0

    printed = capsys.readouterr()
    assert printed.err.startswith("warning: [empty-selection]")
    assert "warning" not in printed.out
    assert "word_counts" in printed.out


def test_ls_lists_names_and_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`ls` prints names, or one JSON object per line with the manifest's entry, as dbt does."""
    assert exit_code("ls", "--select", "+device_averages") == 0
    names = capsys.readouterr().out.splitlines()
    assert exit_code("ls", "--select", "devices", "--resource-type", "model", "--output", "json") == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert set(names) == {
        "source:examples.iot.signals",
        "examples.device_locations",
        "examples.devices.device_averages",
    }
    assert {entry["unique_id"].rsplit(".", 1)[1] for entry in entries} == {
        "device_averages",
        "device_sessions",
        "device_sliding_windows",
        "device_windows",
    }


def test_list_is_another_name_of_ls(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`list` is another name of `ls`, as in dbt."""
    listed = [(exit_code(name), capsys.readouterr().out) for name in ("ls", "list")]

    assert listed[0] == listed[1]
    assert listed[0][1]


def test_several_words_after_select_are_a_union(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Several words after --select are a union, as in dbt, where users write them without quotes."""
    assert exit_code("ls", "--select", "word_counts", "device_windows", "--exclude", "tag:iot") == 0

    assert capsys.readouterr().out.splitlines() == ["examples.wordcount.word_counts"]


def test_variables_and_target_come_from_the_command_line(project: Path) -> None:
    """--vars overrides the variables of project.yml, and --target selects the target."""
    assert exit_code("compile", "--vars", "{devices_path: elsewhere}") == 0

    manifest = json.loads((project / "target/manifest.json").read_text())
    assert manifest["sources"]["source.examples.iot.signals"]["path"] == "elsewhere/*.json"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("ls", "--select", "nothing_such"), 1, "[empty-selection]"),
        (("ls", "--select", "tga:iot"), 1, "[unknown-selector]"),
        (("compile", "--target", "lokal"), 1, "[unknown-target]"),
        (("compile", "--vars", "{a: [}"), 2, "--vars"),
        (("compile", "--vars", "a"), 2, "--vars"),
        (("compile", "--vars", "{min_fare:3}"), 2, "use --vars '{min_fare: 3}'"),
        (("ls", "--select", ""), 2, "--select is empty"),
        (("ls", "--exclude", " "), 2, "--exclude is empty"),
        (("ls", "--project-dir", "/nothing/such"), 2, "'/nothing/such' does not exist"),
        (("ls", "--project-dir", "project.yml"), 2, "'project.yml' is a file"),
        (("compile", "--project-dir", "/"), 1, "[project-not-found]"),
        (("compile", "--nothing-such"), 2, "No such option"),
        (("run", "--for", "soon"), 2, "duration"),
        (("run", "--for", "0s"), 2, "duration greater than zero"),
        (("run", "--for", "-5m"), 2, "duration greater than zero"),
        (("run", "--for", f"{'9' * 400}d"), 2, "duration greater than zero"),
        (("run", "--select", "cloudtrail_in_order"), 1, "[no-terminal-model]"),
        (("run", "--select", "word_counts", "--available-now"), 1, "[socket-available-now]"),
        (("run", "--select", "cloudtrail", "--full-refresh", "cloudtrail_hourly"), 2, "unexpected extra argument"),
        (("run", "--select", "cloudtrail", "--accept-state-change", "cloudtrail_hourli"), 1, "cloudtrail_hourly"),
        (
            ("run", "--select", "cloudtrail", "--accept-state-change", "word_counts"),
            2,
            "no query of this run",
        ),
        (("compil",), 2, "No such command 'compil': did you mean `compile`?"),
        (("nothing-such",), 2, "No such command 'nothing-such'."),
        (("show", "orders"), 2, "(orders): select nodes with --select, for example `sqlstream show --select orders`"),
        (("run", "a", "b"), 2, "(a b): select nodes with --select, for example `sqlstream run --select a`"),
        (("clean", "orders"), 2, "Got unexpected extra argument (orders)\n"),
        (("build", "--select", "cloudtrail_in_order"), 1, "[nothing-to-build]"),
        (("retry",), 2, "there is no command to retry"),
        (("seed",), 2, "seeds need no loading"),
        (("docs", "serve"), 2, "run `sqlstream docs generate` first"),
        (("source", "freshness"), 1, "[no-freshness]"),
        (("freshness",), 2, "run `sqlstream source freshness`"),
        (("show",), 2, "needs a selection such as --select my_model"),
        (("show", "--inline", "select 1", "--select", "a"), 2, "cannot be combined"),
        (("test", "--select", "word_counts"), 1, "[empty-selection] `word_counts` has no unit test"),
        (("test", "--data", "--select", "word_counts"), 1, "[empty-selection] `word_counts` has no data test"),
    ],
)
def test_exit_codes(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    """An error in the project exits with 1 and a wrong command line with 2; messages go to stderr."""
    assert exit_code(*arguments) == code

    printed = capsys.readouterr()
    assert said in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("arguments", "env", "why"),
    [
        (("--target", "prod"), {"SQLSTREAM_TARGET": "other"}, "--target names it"),
        ((), {"SQLSTREAM_TARGET": "prod"}, "SQLSTREAM_TARGET names it"),
    ],
)
def test_an_unknown_target_names_its_origin(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    env: dict[str, str],
    why: str,
) -> None:
    """An unknown target names the existing targets and the environment variable or option that set it."""
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    assert exit_code("ls", *arguments) == 1
    assert f"why: {why}; the targets of project.yml are `local`" in capsys.readouterr().err


def test_a_refused_run_replaces_the_previous_results(project: Path) -> None:
    """A refused run replaces run_results.json with its findings, whether or not the project loaded."""
    results = project / "target/run_results.json"
    results.parent.mkdir()
    seen = []
    for arguments in (("--target", "prod"), ("--select", "nothing_such"), ("--select", "cloudtrail_in_order")):
        results.write_text("{}")
        assert exit_code("run", *arguments) == 1
        content = json.loads(results.read_text())
        assert (content["status"], content["results"]) == ("error", [])
        seen.append((content["metadata"]["target"], [finding["code"] for finding in content["findings"]]))

    assert seen == [("prod", ["unknown-target"]), ("local", ["empty-selection"]), ("local", ["no-terminal-model"])]


def test_the_help_lists_commands_in_working_order(capsys: pytest.CaptureFixture[str]) -> None:
    """The help lists each command in working order, on one full line."""
    assert exit_code("--help") == 0

    lines = capsys.readouterr().out.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in lines] == [
        "init",
        "debug",
        "deps",
        "compile",
        "explain",
        "ls",
        "lineage",
        "show",
        "dev",
        "source",
        "contract",
        "test",
        "plan",
        "run",
        "submit",
        "build",
        "retry",
        "status",
        "ui",
        "replay",
        "backfill",
        "quarantine",
        "promote",
        "rollback",
        "path",
        "maintain",
        "docs",
        "state",
        "clean",
    ]
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


def test_a_template_can_print_and_log(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """log(info=True) prints and logs, log() only logs, as in dbt."""
    (project / "models/said.sql").write_text("{{ log('loud', info=True) }}{{ log('quiet') }}select 1 as one")

    assert exit_code("compile", "--quiet") == 0

    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "loud\n")
    log = (project / "logs/sqlstream.log").read_text()
    assert "loud" in log
    assert "quiet" in log


def test_a_model_with_the_view_name_of_a_source_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model with the view name of a source is refused, because it would silently replace the source."""
    (project / "models/iot__signals.sql").write_text("select 1 as device")
    (project / "models/both.sql").write_text(
        "select device from {{ ref('iot__signals') }} join {{ source('iot', 'signals') }} using (device)"
    )

    assert exit_code("compile") == 1
    assert "models/both.sql:1:1: [duplicate-name]" in capsys.readouterr().err


def test_clean_removes_target_only(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`clean` removes target/ and leaves storage, logs and all other files."""
    (project / ".sqlstream/local").mkdir(parents=True)
    exit_code("compile")

    assert exit_code("clean") == 0
    assert not (project / "target").exists()
    assert (project / ".sqlstream/local").is_dir()
    assert (project / "logs").is_dir()
    assert exit_code("clean") == 0
    assert "no target/ folder" in capsys.readouterr().out


def test_the_public_names_are_as_documented() -> None:
    """The public API has at most 12 names, sorted and all importable."""
    import sqlstream

    assert sqlstream.__all__ == sorted(sqlstream.__all__)
    assert len(sqlstream.__all__) <= 12
    assert all(hasattr(sqlstream, name) for name in sqlstream.__all__)


@pytest.fixture
def saved(project: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The saved manifest of the project; one model has changed since."""
    assert exit_code("compile", "-q") == 0
    path = (project / "target/manifest.json").rename(project / "saved.json")
    model = project / "models/devices/device_windows.sql"
    model.write_text(model.read_text().replace("10 minutes", "20 minutes"))
    capsys.readouterr()
    return path


def test_changed_nodes_are_listed(
    saved: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--state or SQLSTREAM_STATE sets the saved state; `ls` prints one changed name per line, or none."""
    assert exit_code("ls", "-s", "state:modified", "--state", str(saved)) == 0
    assert capsys.readouterr().out == "examples.devices.device_windows\n"
    monkeypatch.setenv("SQLSTREAM_STATE", str(saved))

    assert exit_code("ls", "-s", "state:new") == 0

    printed = capsys.readouterr()
    assert printed.out == ""
    assert "warning: [empty-selection]" in printed.err


def test_a_run_without_changed_nodes_succeeds(saved: Path, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run of changed models succeeds without starting Spark if nothing has changed."""
    assert exit_code("run", "-s", "state:new+", "--state", str(saved)) == 0

    assert "TOTAL=0" in capsys.readouterr().out
    assert json.loads((project / "target/run_results.json").read_text())["status"] == "success"


def test_resource_types_are_excluded(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resource types can be excluded with both spellings of the option and with the environment variable."""
    spelled = (("resource-type", "model"), ("resource-types", "source"), ("resource-type", "exposure"))
    assert exit_code("ls", *(word for option, type_ in spelled for word in (f"--exclude-{option}", type_))) == 0
    seeds = capsys.readouterr().out
    monkeypatch.setenv("SQLSTREAM_EXCLUDE_RESOURCE_TYPES", "model source exposure")
    assert exit_code("ls") == 0

    assert capsys.readouterr().out == seeds
    assert seeds.count("\n") == 1


def test_unit_tests_are_listed_on_request(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`ls` lists unit tests on request, as selectors that other commands accept, with their locations."""
    shutil.copytree(ROOT / "tests" / "models", project / "tests/models")

    assert exit_code("ls", "--resource-type", "unit_test", "--select", "device_sessions") == 0
    name = capsys.readouterr().out.split()[0]
    assert exit_code("ls", "--resource-type", "unit_test", "--select", name, "--output", "json") == 0
    entry = json.loads(capsys.readouterr().out)

    assert name.startswith("unit_test:device_sessions.")
    assert entry["original_file_path"] == "tests/models/devices.yml"
    assert entry["depends_on"] == {"nodes": ["model.examples.device_sessions"]}


def test_commands_accept_a_selector(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command that selects nodes accepts --selector."""
    (project / "selectors.yml").write_text("selectors: [{name: small, definition: device_windows}]\n")

    assert exit_code("ls", "--selector", "small") == 0
    assert capsys.readouterr().out == "examples.devices.device_windows\n"
    assert exit_code("compile", "--selector", "small") == 0
    assert "WATERMARK" in capsys.readouterr().out
    assert exit_code("run", "--selector", "smal") == 1
    assert "did you mean `small`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("ls", "--selector", "a", "--select", "b"),
        ("compile", "--selector", "a", "--exclude", "b"),
        ("run", "--selector", ""),
        ("ls", "-s", "state:modified"),
        ("ls", "--state", "nowhere"),
    ],
)
def test_contradictory_selections_are_usage_errors(project: Path, arguments: tuple[str, ...]) -> None:
    """Two selections at once, an empty selector name and a missing state are usage errors."""
    assert exit_code(*arguments) == 2


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5m", 90), ("2h", 7200), ("90 seconds", 90), ("1 minute 30 seconds", 90)]
)
def test_durations(text: str, seconds: float) -> None:
    """A duration is a number with a letter, or an interval as in YAML."""
    assert Duration().convert(text, None, None) == seconds
