"""The modules of the pages as one classic script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sqlstream.web.site.page import WEB, bundle_modules, read_asset

ASSETS = WEB / "assets"
VENDOR = ASSETS / "vendor"


def test_each_module_runs_once_and_before_those_that_import_it(tmp_path: Path) -> None:
    """A module that two others import is in the bundle once, before them, and they get its exports."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "base.js").write_text("export const one = 1;\nexport async function two() {}\n")
    (tmp_path / "lib" / "more.js").write_text('import { one } from "./base.js";\nexport class Three {}\n')
    (tmp_path / "main.js").write_text(
        'import {\n  one,\n  two,\n} from "./lib/base.js";\nimport { Three } from "./lib/more.js";\nrun(one, two, Three);\n'
    )

    bundle = bundle_modules("main.js", tmp_path)

    assert re.findall(r"^// (.*)$", bundle, re.MULTILINE) == ["lib/base.js", "lib/more.js", "main.js"]
    assert "return { one, two };" in bundle
    assert "const { Three } = module_lib_more;" in bundle
    assert not re.search(r"^(import|export)\b", bundle, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("export default 1;\n", "main.js:1: .*`export`"),
        ('import x from "./other.js";\n', "main.js:1: .*`import`"),
        ("let a;\nexport { a };\n", "main.js:2: .*`export`"),
        ('import { a } from "./main.js";\n', "cycle: main.js -> main.js"),
    ],
)
def test_other_forms_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    """A form that the bundle would get wrong raises an error with its line."""
    (tmp_path / "main.js").write_text(text)

    with pytest.raises(ValueError, match=problem):
        bundle_modules("main.js", tmp_path)


@pytest.mark.parametrize("module", ["dom", "graph", "kinds", "layout", "search", "sql"])
def test_the_shared_modules_can_be_bundled(module: str) -> None:
    """Each shared module has only forms that the bundle knows, and cannot end a script element."""
    bundle = bundle_modules(f"assets/{module}.js")

    assert f"const module_assets_{module} =" in bundle
    assert "</script" not in bundle.lower()


def test_the_versions_of_libraries_agree() -> None:
    """The page and the script of the vendored libraries name the same versions, and each library has its licence."""
    page, script = ((VENDOR / name).read_text() for name in ("README.md", "renew.sh"))
    listed = re.findall(r"^\| `([^`]+)` \| ([\d.]+) \| `(\w+)/", page, re.MULTILINE)

    assert sorted(re.findall(r"^renew (\S+)@(\S+) (\w+)", script, re.MULTILINE)) == sorted(listed)
    assert {folder.name for folder in VENDOR.iterdir() if folder.is_dir()} == {folder for *_, folder in listed}
    assert all((VENDOR / folder / "LICENSE").is_file() for *_, folder in listed)


def test_pages_load_nothing_from_a_network() -> None:
    """No shared style or module names another host."""
    own = [path for path in WEB.rglob("*") if path.suffix in (".css", ".js") and "vendor" not in path.parts]

    texts = [read_asset(str(path.relative_to(WEB))).replace("http://www.w3.org/2000/svg", "") for path in own]
    assert not [path for path, text in zip(own, texts, strict=True) if re.search(r"https?://", text)]


def test_the_live_page_preloads_all_its_modules() -> None:
    """A browser asks for all of them at once, not for each after the one that imports it."""
    page = (ASSETS / "index.html").read_text()
    found, waiting = set(), [ASSETS / "ui/main.js"]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            names = re.findall(r'^import .*?from "([^"]+)"', module.read_text(), re.MULTILINE)
            waiting += [(module.parent / name).resolve() for name in names]
    preloaded = re.findall(r'rel="modulepreload" href="/assets/([^"]+)"', page)
    assert sorted(preloaded) == sorted(str(module.relative_to(ASSETS)) for module in found)
