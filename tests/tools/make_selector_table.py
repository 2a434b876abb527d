"""Writes tests/unit/compiler/selectors.yml: node selectors, each with the nodes that dbt selects.

Run it manually, not in CI, after a change of tests/projects/selection or of the selectors in SELECTORS:

    python3 -m venv /tmp/dbtvenv
    /tmp/dbtvenv/bin/pip install 'dbt-core>=1.11.16,<1.12' dbt-duckdb
    /tmp/dbtvenv/bin/python -m tests.tools.make_selector_table

It takes no arguments and uses neither network nor database, because `dbt ls` only parses. It creates the dbt project in
a temporary folder from the sqlstream project's files: unchanged models and seeds, `project.yml` as `dbt_project.yml`,
and sources without the keys that dbt does not know.

It needs dbt-core<1.12 for its Python interface, and at least 1.11.16, because up to 1.11.0 `orders*` did not find a model
in a folder: dbt compared a wildcard only with the whole dotted name, not with the model's name.

One thing differs from a plain dbt project. dbt reads no YAML in a project's root, so `sources.yml` is in a separate
folder, and the tool then sets the path of its tables to `sources.yml` in dbt's manifest.

Not in the table: `state:` and selectors.yml (see make_selector_definitions.py), `sink:`, and dbt's methods for things
that sqlstream does not have (tests, metrics, groups, access, versions).
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml
from dbt.cli.main import dbtRunner  # type: ignore[import-not-found, unused-ignore]
from dbt.contracts.graph.manifest import Manifest  # type: ignore[import-not-found, unused-ignore]

TESTS = Path(__file__).resolve().parents[1]
PROJECT = TESTS / "projects" / "selection"
TABLE = TESTS / "unit" / "compiler" / "selectors.yml"
ROOT_SOURCES = "root_sources"
"""The dbt project's folder for the sqlstream project's `sources.yml`. No selector may match it."""

SOURCE_KEYS = ("name", "description", "tags", "meta", "config", "tables")
TABLE_KEYS = ("name", "description", "tags", "meta", "config")
QUIET = ("--quiet", "--no-print", "--log-level", "none", "--log-level-file", "none")
OFFLINE = ("--no-send-anonymous-usage-stats", "--no-version-check", "--no-partial-parse", "--no-write-json")

SELECTORS = """
# no selection
everything

# bare names
orders | orders_by_minute | orders_with_customers | customers | regions_2 | s3_reads | failed_logins_5m | alerts
shop | cloudtrail | marts | reporting | seeds | models | selection | cloudtrail_logs | payments | aws | order
orders_ | root | 2 | nothing_of_that_name

# wildcards in a name
* | orders* | *orders | *orders* | orders_* | *_by_* | orders_by_?* | ?lows | s3_read? | s3_read?? | *_[0-9]m
[a-c]* | [ab]* | [!a-r]* | *[0-9]* | regions_[0-9] | regions_[13] | orders[ | [orders] | shop* | *shop | *alerts*
cloud*

# dotted names (fqn): project, folders, name
selection.shop.orders | shop.orders | shop.marts | shop.marts.big_orders | selection.shop.marts | selection.alerts
selection.cloudtrail.alerts | cloudtrail.alerts | cloudtrail.alerts.root_logins | alerts.root_logins
marts.big_orders | shop.shop | reporting.shop | shop.* | shop.orders* | shop.*orders | shop.*.big_orders
shop.marts.* | *.marts.* | *.orders | *.big_orders | *.alerts | *.shop | selection.* | selection.*.orders
selection.shop.o* | selection.customers | selection.seeds.customers | sh?p.orders | [cs]*.orders
cloudtrail.*.root_logins | cloudtrail.*_* | shop. | .orders | other.shop.orders | shop.orders.orders
selection.selection.orders | shop..orders

# fqn:
fqn:* | fqn:orders | fqn:shop | fqn:shop.orders | fqn:selection.shop.marts | fqn:*_by_* | fqn:orders.sql
fqn:models/shop | fqn:aws.cloudtrail_logs | fqn:customers | +fqn:big_orders | fqn:shop.marts+

# path:
path:models | path:models/ | path:models/shop | path:models/shop/ | path:models/shop/marts
path:models/cloudtrail/alerts | path:models/shop/orders.sql | path:models/shop/orders | path:models/shop/orders*
path:models/shop/*.sql | path:models/shop/* | path:models/* | path:models/*.sql | path:models/*/alerts
path:models/**/*orders*.sql | path:models/** | path:**/marts | path:**/orders.sql | path:*/shop | path:*/*/shop.sql
path:models/s?op | path:models/[cr]* | path:[ms]* | path:seeds | path:seeds/ | path:seeds/customers.csv
path:seeds/*.csv | path:seeds/_seeds.yml | path:sources.yml | path:*.yml | path:models/shop/_shop.yml
path:models/cloudtrail/_cloudtrail.yml | path:models/shop/marts/_marts.yml | path:models/**/*.yml | path:shop
path:orders.sql | path:shop/orders.sql | path:./models/shop | path:models/./shop | path:models//shop
path:models/shop/../reporting | path:../models | path:Models/Shop | path:models/cloudtrail/alerts/old_logins.sql
path:models/nowhere | path:/models | path:. | path: | +path:models/shop/marts | path:models/shop/marts+
path:sources.yml+ | @path:seeds | path:models/shop,path:models/shop/marts | path:models/{shop,reporting}
path:** | path:**/* | path:models/**/ | path:models/shop/*/ | path:models/shop/orders.sql/
path:models/**/marts/* | path:*/cloudtrail/** | path:models/*/*.sql

# a bare path (it has a slash)
models/shop | models/shop/ | models/ | seeds/ | ./models/shop | models/shop/orders.sql | models/shop/orders
models/*/alerts | models/**/marts | shop/orders.sql | shop/ | models/shop/_shop.yml | models/reporting/shop.sql+
+models/shop/marts | 1+models/shop/marts | models/nowhere | models/shop/marts/ | /
**/ | */ | ./ | models/shop/*.sql | **/orders*

# file: and a bare file name
orders.sql | ORDERS.SQL | Orders.sql | shop.sql | orders*.sql | *.sql | customers.csv | *.csv | sources.yml
_shop.yml | orders.sql+ | +orders.sql | nothing.sql | marts.py | old_logins.sql | file:orders.sql | file:orders
file:orders* | file:*orders | file:*.csv | file:customers | file:*.sql | file:* | file:sources | file:sources.yml
file:_shop | file:_shop.yml | file:[ef]* | file:shop | file:shop.* | file:ORDERS | file:models/shop/orders.sql
file:_seeds.yml | file:old_logins | 1+file:big_orders | file:

# tag:
tag:security | tag:urgent | tag:core | tag:raw | tag:aws | tag:finance | tag:static | tag:streaming | tag:staging
tag:gold | tag:mart | tag:hourly | tag:alerting | tag:legacy | tag:experimental_1 | tag:experimental_? | tag:s*
tag:*t* | tag:[sg]* | tag:* | tag:Security | tag:SECURITY | tag:secur | tag: | tag:nothing | +tag:mart
tag:finance+ | 1+tag:gold | @tag:finance | tag:urgent+1 | tag.x:core

# source:
source:aws | source:shop | source:aws.cloudtrail_logs | source:shop.orders | source:* | source:*.* | source:*.orders
source:aws.* | source:s* | source:aws.*logs | source:?ws | source:[as]* | source:cloudtrail_logs
source:selection.aws.* | source:selection.shop.orders | source:*.*.* | source:other.aws.* | source:AWS | source:aws.
source: | source:nothing | source:a.b.c.d | source:aws+ | source:shop+ | source:*+ | source:aws+1
source:shop.payments+ | source:aws.vpc_flow_logs+ | source:shop.orders+2 | @source:aws | @source:shop.payments
@source:* | +source:aws | 1+source:shop.orders+1

# config.x:
config.enabled:true | config.enabled:True | config.enabled:TRUE | config.enabled:false | config.enabled:1
config.enabled:yes | config.sink:warehouse | config.sink:archive | config.sink:screen | config.sink:ware*
config.sink:* | config.sink:Warehouse | config.sink:nothing | config.output_mode:append | config.output_mode:update
config.trigger:available_now | config.trigger:10 | config.tags:security | config.tags:core | config.tags:raw
config.tags:sec* | config.tags:Security | config.tags:hourly | config.partition_by:day
config.partition_by:event_source | config.partition_by:region_name | config.partition_by:day,event_source
config.meta.owner:secops | config.meta.owner:shop_team | config.meta.owner:platform | config.meta.owner:infra
config.meta.owner:growth | config.meta.owner:shop* | config.meta.region:eu | config.meta.pager:true
config.meta.pager:false | config.meta.pager:False | config.meta.pii:true | config.meta.pii:false
config.meta.severity:3 | config.meta.domains:sales | config.meta.domains:finance | config.meta.domains:sal*
config.meta.sla.level:gold | config.meta.sla.level:silver | config.meta.sla:gold | config.meta.sla:level
config.meta.retention.class:cold | config.meta.retention.days:30 | config.meta.retention.days.x:30
config.meta:owner | config.meta.Owner:secops | config.META.owner:secops | config.meta.:secops
config.options.compression:zstd | config.options.compression:gzip | config.options:compression | config.nothing:x
config.meta.nothing:None | config.sink: | config:warehouse | config.:x | +config.sink:screen | config.sink:archive+
config.meta.owner:secops+ | 1+config.sink:archive | @config.tags:static

# resource_type: and package:
resource_type:model | resource_type:seed | resource_type:source | resource_type:test | resource_type:Model
resource_type:models | resource_type:nothing | resource_type:* | resource_type: | resource_type:source+1
1+resource_type:seed | package:selection | package:this | package:sel* | package:* | package:other
package:Selection | package:

# graph operators
+orders | orders+ | +orders+ | orders+1 | orders+2 | orders+3 | orders+99 | 1+orders | 2+big_orders | 1+big_orders
+big_orders | +big_orders+ | 2+orders+1 | 1+orders_with_customers+1 | +orders_by_hour | 1+alerts | 2+alerts
+alerts | 1+repeat_orders | cloudtrail_events+ | cloudtrail_events+1 | +cloudtrail_events | root_logins+
customers+ | customers+1 | regions_2+ | +customers | @orders | @customers | @regions_2 | @root_logins
@cloudtrail_events | @alerts | @flows | @orders_by_hour | @big_orders | +* | *+ | @* | +shop | shop+ | 1+shop
+orders_by_* | *_by_*+ | @s3_* | +shop.marts | shop.marts+ | 1+cloudtrail.alerts+1 | orders+0 | 0+orders
0+orders+0 | 01+orders | @+orders | @1+orders | @orders+ | @orders+1 | ++orders | orders++ | @@orders | +@orders
orders@ | + | @ | 1+ | +1 | 1 | -1+orders | orders+-1 | orders+x | x+orders | 1+2 | +nothing | nothing+ | @nothing

# exposure:
exposure:weekly_report | exposure:* | exposure:weekly* | exposure:selection.weekly_report | exposure:selection.*
exposure:other.weekly_report | exposure:Weekly_report | exposure: | exposure:nothing | exposure:old_report
exposure:reporting.weekly_report | exposure:a.b.c | +exposure:weekly_report | 1+exposure:* | exposure:*+
+exposure:fraud_scores,resource_type:model | @exposure:weekly_report | weekly_report | reporting.weekly_report
selection.reporting.weekly_report | path:models/reporting/_reporting.yml | _reporting.yml | file:_reporting
models/reporting | +weekly_report | orders+ | customers+1 | source:shop.payments+1 | tag:weekly | tag:bi
tag:downstream | config.tags:weekly | config.tags:core | config.tags:bi | config.meta.owner:growth
config.meta.owner:reporting_team | config.meta.pii:true | config.enabled:true | config.enabled:false
resource_type:exposure | +resource_type:exposure | package:selection | fqn:weekly_report | fqn:reporting.* | tag:core
everything except exposure:* | everything except resource_type:exposure | +exposure:* except exposure:*
orders+ except exposure:weekly_report

# disabled
old_logins | +old_logins | old_logins+ | @old_logins | old_* | cloudtrail.alerts.old_logins | root_logins+1

# case
ORDERS | Orders | ORDERS* | SHOP.orders | FQN:orders | Tag:security | SOURCE:aws | RESOURCE_TYPE:seed

# union (space)
orders customers | orders nothing | nothing nothing_either | orders orders | +orders_by_hour tag:static
shop.marts source:aws | tag:urgent+ path:models/reporting | @payments @shop.payments
flows 1+shop seeds/ orders.sql config.sink:screen

# intersection (comma)
orders*,tag:core | tag:core,tag:static | +alerts,cloudtrail | +alerts,+ec2_calls | source:aws+,tag:alerting
orders+,+big_orders | orders+1,config.sink:warehouse | +big_orders,resource_type:source
+big_orders,resource_type:seed | @customers,tag:raw | path:models/shop,resource_type:model
*_by_*,tag:core,config.trigger:available_now | tag:core,tag:staging,+big_orders | orders,customers | orders,nothing
orders, | ,orders | , | orders,,customers | orders,orders | 1+alerts,s3_*
config.sink:warehouse,config.meta.owner:shop_team,package:this | source:*,tag:security | shop,shop.*

# unions of intersections
orders*,tag:core flows | tag:core,tag:staging tag:urgent,tag:alerting | +alerts,cloudtrail.alerts +big_orders,seeds
orders+,config.sink:warehouse source:aws+1,tag:staging customers | orders, customers | orders ,customers
tag:gold,shop.* shop | nothing,orders source:shop,tag:finance
@payments,x 2+big_orders,tag:* path:models/*.sql,tag:network

# unknown methods
unknown:orders | name:orders | orders:shop | http://shop | my-method:orders | path.x:models/shop | :orders | orders:
: | tag:a:b | source:aws:cloudtrail_logs | unknown:orders,tag:core | orders unknown:x | unknown.x:y | 9:x

# --exclude
everything except orders | everything except source:* | everything except * | everything except * source:*
everything except nothing | everything except resource_type:seed | everything except tag:streaming
everything except +big_orders | everything except source:aws+ | everything except @customers
everything except orders*,tag:core | everything except path:models/shop config.sink:archive
everything except config.meta.pii:false | orders* except orders | orders* except orders_by_minute orders_by_hour
orders* except *_by_* | orders* except orders_* | orders* except ORDERS* | orders* except nothing
orders except orders | nothing except orders | orders+ except orders | orders+ except orders_by_hour+
orders+ except orders+1 | orders+ except 1+shop | +big_orders except source:* | +big_orders except seeds/
+big_orders except resource_type:seed resource_type:source | +alerts except +root_logins
+alerts except tag:alerting,tag:urgent | @customers except @regions_2 | @s3_reads except source:aws
shop except shop.* | shop.* except shop.marts | shop except reporting.shop | shop except path:models/reporting
models/shop except models/shop/marts | models/shop except models/shop/_shop.yml | path:models except path:models/*
path:models except models/*.sql | path:models/*.sql except flows.sql | file:orders* except file:orders
tag:security except tag:urgent | tag:security except path:models/cloudtrail/alerts source:aws
tag:* except tag:streaming | tag:core except tag:s* | source:* except source:aws | source:aws+ except tag:alerting+
source:*+1 except source:* | config.sink:warehouse except config.trigger:available_now
config.enabled:true except resource_type:model | config.meta.owner:shop_team except config.meta.pii:true
package:this except * | * except +orders_by_hour | * except selection | orders customers except orders
orders,tag:core customers except tag:core | orders*,tag:core flows except orders*,tag:staging
+alerts,cloudtrail +big_orders,tag:core except seeds/ 1+alerts,s3_*
config.sink:warehouse,shop.* tag:urgent except tag:mart @root_logins,path:models/*.sql
old_logins orders except old_logins | orders except unknown:x | unknown:x except orders
everything except resource_type:nothing | everything except @orders+
"""
"""Selections, separated by " | ". Each is the value of one --select flag, and after " except " that of one --exclude flag
("everything": no --select). A line with # is the title of a group."""

SPACED = (" orders", "orders ", "orders  customers", "  orders   tag:static  ", "", " ", "+ orders", "tag: core")
"""Values of --select that test spaces."""

FLAGS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("orders", "customers"), ()),
    (("orders customers", "tag:urgent flows"), ()),
    (("orders,tag:core", "orders"), ()),
    (("", "orders"), ()),
    ((), ("orders+", "cloudtrail_events+")),
    ((), ("",)),
    (("orders*",), ("",)),
    (("orders*",), ("  orders  orders_by_hour ",)),
    (("orders*",), ("orders_by_*", "")),
    (("orders*", "customers"), ("orders", "orders_by_hour")),
)
"""The values of several --select and --exclude flags."""


@dataclass(frozen=True)
class Case:
    """A selection: the values of its --select and --exclude flags, one item per flag."""

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """Returns the command line of the selection."""
        pairs = [("--select", value) for value in self.select] + [("--exclude", value) for value in self.exclude]
        return [word for pair in pairs for word in pair]


@dataclass
class Group:
    """Cases with a common title in the table."""

    title: str
    cases: list[Case] = field(default_factory=list)


def case(text: str) -> Case:
    """Returns the case for an item of `SELECTORS`."""
    select, _, exclude = text.partition(" except ")
    return Case(() if select == "everything" else (select,), (exclude,) if exclude else ())


def groups() -> Iterator[Group]:
    """Yields all cases, in the order of the table."""
    for block in SELECTORS.strip().split("\n\n"):
        title, *lines = block.splitlines()
        yield Group(title.removeprefix("# "), [case(item) for line in lines for item in line.split(" | ")])
    yield Group("spaces", [Case((value,)) for value in SPACED])
    yield Group("several flags", [Case(select, exclude) for select, exclude in FLAGS])


def read_yaml(path: Path) -> dict[str, Any]:
    """Returns a YAML file's mapping."""
    mapping: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return mapping


def write_yaml(path: Path, value: object) -> None:
    """Writes a value as YAML, and creates the folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")


def known_keys(mapping: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """Returns the items of a mapping that dbt knows."""
    return {key: value for key, value in mapping.items() if key in keys}


def dbt_properties(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns a properties file whose sources have only dbt's keys. Models and seeds are unchanged."""
    sources = [known_keys(source, SOURCE_KEYS) for source in properties.get("sources", [])]
    for source in sources:
        source["tables"] = [known_keys(table, TABLE_KEYS) for table in source["tables"]]
    return {**properties, "sources": sources} if sources else properties


def dbt_project(project: dict[str, Any]) -> dict[str, Any]:
    """Returns dbt_project.yml for a project.yml, with the project's name above the folders, as dbt requires."""
    name = project["name"]
    return {
        "name": name,
        "version": project["version"],
        "profile": name,
        "model-paths": ["models", ROOT_SOURCES],
        "models": {name: project["models"]},
        "exposures": {name: project["exposures"]},
    }


def generate(folder: Path, source: Path = PROJECT) -> None:
    """Writes the dbt project of the sqlstream project `source` into an empty folder."""
    for part in ("models", "seeds", "macros"):
        if (source / part).is_dir():
            shutil.copytree(source / part, folder / part)
    for path in (folder / "models").rglob("*.yml"):
        write_yaml(path, dbt_properties(read_yaml(path)))
    sources = dbt_properties(read_yaml(source / "sources.yml"))
    write_yaml(folder / ROOT_SOURCES / "sources.yml", sources)
    write_yaml(folder / "sources.yml", sources)
    project = dbt_project(read_yaml(source / "project.yml"))
    write_yaml(folder / "dbt_project.yml", project)
    output = {"type": "duckdb", "path": ":memory:"}
    write_yaml(folder / "profiles.yml", {project["name"]: {"target": "local", "outputs": {"local": output}}})


def parse(*arguments: str) -> Manifest:
    """Returns dbt's manifest of the project in the working directory, with the paths of sources in the root.

    With `--target-path` in `arguments`, dbt also writes it there.

    Raises: SystemExit if dbt cannot parse the project.
    """
    quiet = [flag for flag in OFFLINE if not (arguments and flag == "--no-write-json")]
    result = dbtRunner().invoke([*QUIET, *quiet, "parse", *arguments])
    if not isinstance(result.result, Manifest):
        message = f"dbt cannot parse the project: {result.exception}"
        raise SystemExit(message)
    for source in result.result.sources.values():
        source.original_file_path = source.original_file_path.removeprefix(f"{ROOT_SOURCES}/")
    return result.result


def short_id(unique_id: str) -> str:
    """Returns a node's id without the project's name: `model.orders` for `model.selection.orders`."""
    kind, _, name = unique_id.split(".", 2)
    return f"{kind}.{name}"


def outcome(manifest: Manifest, case: Case, *arguments: str) -> dict[str, Any]:
    """Returns dbt's result for a case and additional arguments: the sorted nodes, or that dbt refuses the selection."""
    command = [*QUIET, *OFFLINE, "ls", "--output", "json", "--output-keys", "unique_id", *case.arguments(), *arguments]
    result = dbtRunner(manifest=manifest).invoke(command)
    if not result.success:
        return {"error": True}
    lines = result.result or []
    return {"expect": sorted(short_id(json.loads(line)["unique_id"]) for line in lines)}


def flag_values(values: tuple[str, ...]) -> str | list[str]:
    """Returns the values of flags in the form of the table: one as text, none or several as a list."""
    return values[0] if len(values) == 1 else list(values)


def entry(case: Case, found: dict[str, Any]) -> dict[str, Any]:
    """Returns an entry of the table, with `exclude` only if it is given."""
    exclude = {"exclude": flag_values(case.exclude)} if case.exclude else {}
    return {"select": flag_values(case.select), **exclude, **found}


def header() -> str:
    """Returns the comment at the top of the table."""
    tools = f"dbt-core {version('dbt-core')}, dbt-duckdb {version('dbt-duckdb')}, Python {platform.python_version()}"
    return (
        "# Node selectors for tests/projects/selection, each with the nodes that dbt selects.\n"
        "# Generated by tests/tools/make_selector_table.py: do not edit by hand.\n"
        f"# Generated with {tools}.\n"
        "#\n"
        "# select, exclude: the value of the flag, or a list of values for several flags. An empty list or a missing\n"
        "# key: no such flag (without --select: all nodes). expect: the sorted nodes. error: dbt refuses the selection.\n"
    )


def table(manifest: Manifest) -> str:
    """Returns the text of the table."""
    parts = [header()]
    for group in groups():
        entries = [entry(case, outcome(manifest, case)) for case in group.cases]
        dumped = [yaml.safe_dump([item], sort_keys=False, width=100, default_flow_style=None) for item in entries]
        parts.append(f"\n# {group.title}\n" + "".join(dumped))
    return "".join(parts)


def main() -> None:
    """Writes the table."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        os.chdir(folder)
        text = table(parse())
        os.chdir(TESTS)
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text(text, encoding="utf-8")
    print(f"{len(yaml.safe_load(text))} selectors in {TABLE}")


if __name__ == "__main__":
    main()
