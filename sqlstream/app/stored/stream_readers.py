"""The streams of the project that read the output of a query."""

from __future__ import annotations

from sqlstream.app.loading.load import Loaded
from sqlstream.app.session.target_storage import sink_path
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.project.files.paths import folder_of_pattern, join, plain_path


def streams_of(loaded: Loaded, model: CompiledModel, use: Output, path: str | None) -> list[str]:
    """Returns the models of the project whose streams read the output of `model` in the sink `use`, which a version
    writes to the table or folder `path`.
    """
    compiled = loaded.compiled
    root = str(compiled.project.root)
    paths = [] if use.table is not None or path is None else [path, sink_path(loaded, use.path or "")]
    folders = [plain_path("/", each) for each in paths]
    found = []
    for reader in compiled.models.values():
        for table in compiled.tables_of(reader.unique_id):
            if table.mode == "batch" or reader.name == model.name:
                continue
            if table in compiled.stored.values():
                reads = compiled.writer_of(table).name == model.name
            elif table.table is not None:
                reads = any(_same_table(table.table, each) for each in (use.table, path) if each)
            else:
                start = folder_of_pattern(join(root, table.path or ""), root, lambda _: False)
                reads = table.path is not None and any(_overlap(start, each) for each in folders)
            if reads:
                found.append(reader.name)
    return list(dict.fromkeys(found))


def _same_table(one: str, other: str) -> bool:
    """Returns whether two names can be those of one table; the catalog and the database can be left out."""
    one, other = (f".{name.replace('`', '').lower()}" for name in (one, other))
    return one.endswith(other) or other.endswith(one)


def _overlap(one: str, other: str) -> bool:
    """Returns whether one of two folders contains the other, or they are the same."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
