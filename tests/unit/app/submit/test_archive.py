"""The archive of a submitted run: the same project gives the same bytes, and nothing secret or needless is in it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sqlstream.app.session import start_driver
from sqlstream.app.submit import archive
from sqlstream.app.submit.archive import Archive, kubernetes_name, pack, unmistakable_secrets
from sqlstream.errors import FindingsError, UsageError
from sqlstream.spark.secrets import Secrets
from tests.support.compiling import write_files

FILES = {
    "project.yml": "name: shop\n",
    "connectors.lock": "version: 1\n",
    "models/logs/target.sql": "select 1",
    "models/secret_orders.sql": "select 1",
    "models/docs.md": "{% docs x %}x{% enddocs %}",
    "macros/m.sql": "",
    "seeds/credentials.csv": "kind\n",
    "python/functions.py": "",
    "schemas/order.avsc": "{}",
}
LEFT_OUT = {
    ".env": "SQLSTREAM_SECRET_X=1",
    "shop.env": "SQLSTREAM_SECRET_X=1",
    ".git/config.yml": "",
    ".venv/lib/m.py": "",
    "env/pyvenv.cfg": "",
    "env/lib/m.py": "",
    "target/manifest.json": "{}",
    "logs/events.json": "{}",
    "tests/models/orders.yml": "",
    "python/__pycache__/functions.py": "",
    "gcp-service-account.json": "{}",
    "conf/key.json": "{}",
    "key.pem": "",
    "data/orders.parquet": "",
}


def packed(root: Path, env: dict[str, str] | None = None, *, with_sqlstream: bool = False) -> Archive:
    """Packs the project in `root`."""
    return pack(root, "Shop & Co", Secrets(env or {}), with_sqlstream=with_sqlstream)


def test_what_a_run_reads_is_packed(tmp_path: Path) -> None:
    """Declarations, code, seeds, schemas and the lock are in the archive; artifacts, environments and keys are not."""
    write_files(tmp_path, {**FILES, **LEFT_OUT})

    assert set(packed(tmp_path).files) == set(FILES)


def test_the_same_project_gives_the_same_bytes(tmp_path: Path) -> None:
    """Neither the folder, nor times and permissions, nor the order of files changes the archive. A changed file does."""
    write_files(tmp_path / "a", FILES)
    write_files(tmp_path / "b", dict(reversed(FILES.items())))
    os.utime(tmp_path / "b/project.yml", (1, 1))
    (tmp_path / "b/project.yml").chmod(0o600)
    first, second = packed(tmp_path / "a"), packed(tmp_path / "b")
    assert (first.name, first.content) == (second.name, second.content)
    assert first.name.startswith("shop-co-")

    (tmp_path / "b/macros/m.sql").write_text("{# changed #}")
    assert packed(tmp_path / "b").name != first.name


@pytest.mark.parametrize(
    ("project", "name"),
    [
        ("Shop_Orders", "shop-orders"),
        ("2024_shop", "project-2024-shop"),
        ("été", "t"),
        ("日本", "project"),
        ("x" * 80, "x" * 50),
        ("a" * 49 + "_b", "a" * 49),
    ],
)
def test_a_name_is_one_that_kubernetes_accepts(project: str, name: str) -> None:
    """Names of services begin with a letter, and have at most 63 letters with what is added."""
    assert kubernetes_name(project) == name


def test_links_out_of_the_project_are_left_out(tmp_path: Path) -> None:
    """A link to a file or folder elsewhere, such as a home folder, does not put it in the archive."""
    write_files(tmp_path, {"home/private.yml": "x", "shop/project.yml": "name: shop"})
    (tmp_path / "shop/link.yml").symlink_to(tmp_path / "home/private.yml")
    (tmp_path / "shop/models").symlink_to(tmp_path / "home")

    assert packed(tmp_path / "shop").files == ("project.yml",)


def test_the_value_of_a_secret_is_refused(tmp_path: Path) -> None:
    """A file with the value of a secret of the environment is an error, and the message does not show the value."""
    write_files(tmp_path, {**FILES, "python/functions.py": "PASSWORD = 'tulip-4711'"})

    with pytest.raises(FindingsError) as refused:
        packed(tmp_path, {"SQLSTREAM_SECRET_DB": "tulip-4711"})

    (finding,) = refused.value.findings
    assert (finding.code, str(finding.location)) == ("cannot-submit", "python/functions.py:1:1")
    assert "tulip" not in str(finding)


def test_a_secret_that_can_be_a_word_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """A user name or a flag that is a secret can also be in files by chance."""
    write_files(tmp_path, FILES)

    assert pack(tmp_path, "shop", unmistakable_secrets({"SQLSTREAM_SECRET_USER": "shop"}), with_sqlstream=False).files
    with pytest.raises(FindingsError):
        pack(tmp_path, "shop", unmistakable_secrets({"SQLSTREAM_SECRET_KEY": "select 1"}), with_sqlstream=False)


def test_a_large_project_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with more files than `submit` sends is an error."""
    monkeypatch.setattr(archive, "LARGEST_ARCHIVE_BYTES", 20)
    write_files(tmp_path, FILES)

    with pytest.raises(UsageError, match="fix: move data out"):
        packed(tmp_path)


def test_the_driver_runs_the_command_in_the_archive(tmp_path: Path) -> None:
    """The driver needs only the archive, its own file and the variables beside it, which it removes; its folder is gone
    at the end, and its exit code is that of the command.
    """
    root, beside = tmp_path / "shop", tmp_path / "container"
    write_files(root, {**FILES, "models/logs/target.sql": "select '{{ env_var('KIND') }}' as kind"})
    content = packed(root, with_sqlstream=True)
    assert "packages/sqlstream/errors.md" not in zipfile.ZipFile(io.BytesIO(content.content)).namelist()
    write_files(beside, {start_driver.ENVIRONMENT: '{"KIND": "a"}'})
    (beside / content.name).write_bytes(content.content)
    (beside / "driver.py").write_bytes(Path(start_driver.__file__).read_bytes())
    command = [sys.executable, str(beside / "driver.py"), content.name]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    done = subprocess.run(
        [*command, "ls", "--select", "target"], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    failed = subprocess.run(
        [*command, "ls", "--select", "nothing"], env=env, cwd=tmp_path, capture_output=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, "shop.logs.target\n")
    assert failed.returncode == 1  # nothing matches, and the variables are gone
    assert {path.name for path in tmp_path.iterdir()} == {"shop", "container"}
    assert {path.name for path in beside.iterdir()} == {content.name, "driver.py"}
