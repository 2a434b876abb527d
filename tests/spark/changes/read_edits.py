"""The edits of what a query reads: its sources, their places and options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.spark.changes.edits import REFUSE, RESUME

Tables = Mapping[str, str]
"""The tables of a source by their names: the other keys, as YAML."""


@dataclass(frozen=True)
class ReadEdit:
    """One edit. The query reads the source `NAME`, which has the name of the edit, with `tables`, and then `tables_after`
    of the source `group`. `NAME` in texts is that name, `ROOT` the project's folder.

    `first` are files with the ids of their rows, which exist before the edit, and `second` those that are written after
    it. In between, `moves` happen: `mv`, `cp` (with times) or `ln` of one path to another. `detour` is another query that
    runs in between. `ages` are the ages of files in days. `views` are other models, before and after.
    """

    name: str
    text: str
    expected: str
    after: str
    tables_after: Tables
    before: str = "select id from {{ source('NAME', 'orders') }}"
    tables: Tables = field(default_factory=lambda: {"orders": "path: in/NAME"})
    first: Mapping[str, Sequence[int]] = field(default_factory=lambda: {"in/NAME/1.json": (1, 2)})
    second: Mapping[str, Sequence[int]] = field(default_factory=lambda: {"in/NAME/2.json": (3,)})
    moves: Sequence[tuple[str, str, str]] = ()
    detour: tuple[str, Tables] | None = None
    ages: Mapping[str, int] = field(default_factory=dict)
    views: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
    group: str = "NAME"
    stateful: bool = False
    kind: str = "source"

    def sql(self, *, changed: bool) -> str:
        """Returns the text of the model."""
        return self.filled(self.after if changed else self.before)

    def filled(self, text: str) -> str:
        """Returns a text with the name of the edit."""
        return text.replace("NAME", self.name)


IDS = "select id from {{ source('NAME', 'orders') }}"
SALES = "select id from {{ source('NAME', 'sales') }}"
IN: Tables = {"orders": "path: in/NAME"}
JSON_FILES: Tables = {"orders": "path: 'in/NAME/*.json'"}
TWO: Tables = {"orders": "path: in/NAME", "refunds": "path: in/NAME/refunds"}
REFUNDS = "select id from {{ source('NAME', 'refunds') }}"
UNION = f"{IDS} union all {REFUNDS}"
BOTH = {"in/NAME/1.json": (1, 2), "in/NAME/refunds/1.json": (5,)}
MOVED = ("mv", "in/NAME", "new/NAME")
NEW = {"new/NAME/2.json": (3,)}

# fmt: off
READ_EDITS: tuple[ReadEdit, ...] = (
    ReadEdit("renamed", "a table renamed", REFUSE, SALES, {"sales": "path: in/NAME"}),
    ReadEdit("renamed_told", "a table renamed, with `previous_name`", RESUME, SALES, {"sales": "path: in/NAME, previous_name: orders"}),
    ReadEdit("group_renamed", "a source renamed", REFUSE, IDS.replace("NAME", "NAME_now"), IN, group="NAME_now"),
    ReadEdit("group_told", "a source renamed, with `previous_name`", RESUME, IDS.replace("NAME", "NAME_now"), IN, group="NAME_now, previous_name: NAME"),
    ReadEdit("renamed_pattern", "a table renamed, with another pattern of its folder", REFUSE, SALES, {"sales": "path: 'in/NAME/*'"}),
    ReadEdit("renamed_below", "a table renamed below a view, with `previous_name`", RESUME, "select id from {{ ref('renamed_below_view') }}", {"sales": "path: in/NAME, previous_name: orders"}, before="select id from {{ ref('renamed_below_view') }}", views=({"renamed_below_view": IDS}, {"renamed_below_view": SALES})),
    ReadEdit("renamed_twice_read", "a table renamed that is read twice, with `previous_name`", RESUME, f"{SALES} where id > 1 union all {SALES} where id < 2", {"sales": "path: in/NAME, previous_name: orders"}, before=f"{IDS} where id > 1 union all {IDS} where id < 2"),
    ReadEdit("moved_pattern", "files moved to another folder, path a pattern", REFUSE, IDS, {"orders": "path: 'new/NAME/*.json'"}, tables=JSON_FILES, moves=(MOVED,), second=NEW),
    ReadEdit("moved_plain", "files moved to another folder", REFUSE, IDS, {"orders": "path: new/NAME"}, moves=(MOVED,), second=NEW),
    ReadEdit("moved_by_name", "files moved to another folder, with `fileNameOnly` and a pattern", RESUME, IDS, {"orders": "path: 'new/NAME/*', options: {fileNameOnly: true}"}, moves=(MOVED,), second=NEW),
    ReadEdit("moved_back_option", "`fileNameOnly` removed after files were moved", REFUSE, IDS, {"orders": "path: '{in,new}/NAME/*'"}, tables={"orders": "path: '{in,new}/NAME/*', options: {fileNameOnly: true}"}, moves=(MOVED,), second=NEW),
    ReadEdit("copied", "a copy of the files in another folder", REFUSE, IDS, {"orders": "path: 'new/NAME/*'"}, tables=JSON_FILES, moves=(("cp", "in/NAME", "new/NAME"),), second=NEW),
    ReadEdit("linked", "a symbolic link to the folder", REFUSE, IDS, {"orders": "path: 'new/NAME/*'"}, moves=(("ln", "in/NAME", "new/NAME"),), second=NEW),
    ReadEdit("into_subfolder", "files moved into a subfolder, path a pattern of it", REFUSE, IDS, {"orders": "path: 'in/NAME/old/*.json'"}, tables=JSON_FILES, moves=(("mv", "in/NAME/1.json", "in/NAME/old/1.json"),), second={"in/NAME/old/2.json": (3,)}),
    ReadEdit("absolute", "a relative path made absolute", RESUME, IDS, {"orders": "path: 'ROOT/in/NAME'"}),
    ReadEdit("uri", "a path made a URI", RESUME, IDS, {"orders": "path: 'file://ROOT/./in/NAME/'"}),
    ReadEdit("to_pattern", "a folder to a pattern of its files", RESUME, IDS, JSON_FILES),
    ReadEdit("to_folder", "a pattern of files to their folder", RESUME, IDS, IN, tables=JSON_FILES),
    ReadEdit("wider", "a second folder beside the first one", RESUME, IDS, {"orders": "path: '{in,more}/NAME'"}, second={"in/NAME/2.json": (3,), "more/NAME/1.json": (4,)}),
    ReadEdit("narrower", "a narrower pattern of the same folder", RESUME, IDS, {"orders": "path: 'in/NAME/b*.json'"}, tables=JSON_FILES, first={"in/NAME/a1.json": (1,), "in/NAME/b1.json": (2,)}, second={"in/NAME/b2.json": (3,)}),
    ReadEdit("other_pattern", "another pattern of the same folder", RESUME, IDS, {"orders": "path: 'in/NAME/b*.json'"}, tables={"orders": "path: 'in/NAME/a*.json'"}, first={"in/NAME/a1.json": (1,), "in/NAME/b1.json": (2,)}, second={"in/NAME/b2.json": (3,)}),
    ReadEdit("wider_but_old", "a wider path that finds files older than `maxFileAge`", REFUSE, IDS, {"orders": "path: '{in,more}/NAME'"}, first={"in/NAME/1.json": (1,), "more/NAME/9.json": (4,)}, ages={"more/NAME/9.json": 30}),
    ReadEdit("wider_and_patient", "a wider path that finds old files, with a longer `maxFileAge`", RESUME, IDS, {"orders": "path: '{in,more}/NAME', options: {maxFileAge: 1000d}"}, first={"in/NAME/1.json": (1,), "more/NAME/9.json": (4,)}, ages={"more/NAME/9.json": 30}),
    ReadEdit("older", "a longer `maxFileAge`", RESUME, IDS, {"orders": "path: in/NAME, options: {maxFileAge: 1000d}"}, second={"in/NAME/2.json": (3,), "in/NAME/9.json": (4,)}, ages={"in/NAME/9.json": 30}),
    ReadEdit("recursive", "`recursiveFileLookup`", RESUME, IDS, {"orders": "path: in/NAME, options: {recursiveFileLookup: true}"}, second={"in/NAME/sub/2.json": (3,)}),
    ReadEdit("filtered", "`pathGlobFilter`", RESUME, IDS, {"orders": "path: in/NAME, options: {pathGlobFilter: '[0-9].json'}"}),
    ReadEdit("newest", "`latestFirst` and `maxFilesPerTrigger`", RESUME, IDS, {"orders": "path: in/NAME, options: {latestFirst: true, maxFilesPerTrigger: 1}"}),
    ReadEdit("missing", "`ignoreMissingFiles`", RESUME, IDS, {"orders": "path: in/NAME, options: {ignoreMissingFiles: true}"}),
    ReadEdit("missing_counted", "`ignoreMissingFiles` below an aggregation", RESUME, "select count(*) as id from {{ source('NAME', 'orders') }}", {"orders": "path: in/NAME, options: {ignoreMissingFiles: true}"}, before="select count(*) as id from {{ source('NAME', 'orders') }}", stateful=True),
    ReadEdit("dropped", "a branch of a union dropped", RESUME, IDS, TWO, before=UNION, tables=TWO, first=BOTH),
    ReadEdit("added", "a branch of a union added", RESUME, UNION, TWO, first=BOTH),
    ReadEdit("restored", "a branch of a union dropped, and restored after a run", REFUSE, UNION, TWO, before=UNION, tables=TWO, first=BOTH, detour=(IDS, IN)),
    ReadEdit("restored_renamed", "a branch dropped, and restored under another name after a run", REFUSE, UNION.replace("refunds", "returns"), {"orders": "path: in/NAME", "returns": "path: 'in/NAME/refunds/*'"}, before=UNION, tables=TWO, first=BOTH, detour=(IDS, IN)),
    ReadEdit("moved_in_steps", "a source moved between dropping and restoring it", REFUSE, UNION, {"orders": "path: in/NAME", "refunds": "path: 'new/NAME/*'"}, before=UNION, tables=TWO, first=BOTH, detour=(IDS, IN), moves=(("cp", "in/NAME/refunds", "new/NAME"),)),
    ReadEdit("swapped", "a source in the place of another, with the same rows", REFUSE, SALES, {"orders": "path: in/NAME", "sales": "path: new/NAME"}, moves=(("cp", "in/NAME", "new/NAME"),), second=NEW),
    ReadEdit("swapped_columns", "a source in the place of another, with other columns", RESUME, "select key as id from {{ source('NAME', 'sales') }}", {"sales": "path: new/NAME, schema: 'key int'"}, second=NEW),
    ReadEdit("view_between", "a view between the query and its source", RESUME, "select id from {{ ref('view_between_view') }}", IN, views=({}, {"view_between_view": IDS})),
    ReadEdit("cte", "a view to a CTE", RESUME, f"with o as ({IDS}) select id from o", IN, before="select id from {{ ref('cte_view') }}", views=({"cte_view": IDS}, {})),
    ReadEdit("counted_moved", "a moved folder below an aggregation, path a pattern", REFUSE, "select id, count(*) as n from {{ source('NAME', 'orders') }} group by id", {"orders": "path: 'new/NAME/*'"}, before="select id, count(*) as n from {{ source('NAME', 'orders') }} group by id", moves=(MOVED,), second=NEW, stateful=True),
    ReadEdit("counted_renamed", "a renamed table below an aggregation, with `previous_name`", RESUME, "select id, count(*) as n from {{ source('NAME', 'sales') }} group by id", {"sales": "path: in/NAME, previous_name: orders"}, before="select id, count(*) as n from {{ source('NAME', 'orders') }} group by id", stateful=True),
)
# fmt: on
