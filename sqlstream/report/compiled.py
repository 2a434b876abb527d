"""The output of `sqlstream compile`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding
from sqlstream.numbers import plural
from sqlstream.project.declarations.on_corrupt import declared_sources
from sqlstream.project.wording import excerpt
from sqlstream.report.findings import findings_json

LONGEST_SQL = 100_000
"""The most characters of compiled SQL to print. The file contains all of it."""


def found_line(compiled: CompiledProject) -> str:
    """Returns `Found 12 models, 4 sources, 3 sinks` as in dbt, with the seeds and exposures if there are any."""
    project = compiled.project
    sources = len(declared_sources(project.sources))
    return found_text(
        len(compiled.models), sources, len(project.sinks), len(project.seeds), exposures=len(project.exposures)
    )


def found_text(models: int, sources: int, sinks: int, seeds: int, *, exposures: int = 0) -> str:
    """Returns the line of `found_line` for these counts."""
    counts = [plural(models, "model"), plural(sources, "source"), plural(sinks, "sink")]
    counts += [plural(seeds, "seed")] if seeds else []
    counts += [plural(exposures, "exposure")] if exposures else []
    return f"Found {', '.join(counts)}"


def compiled_text(compiled: CompiledProject, models: Sequence[CompiledModel], spark: str | None = None) -> str:
    """Returns the counts of nodes and the path of the compiled SQL. For a single model also its SQL, as in dbt.

    `spark` is the version of the Spark that has checked the models, if any.
    """
    lines = [found_line(compiled)]
    if spark is not None:
        lines.append(f"Spark {spark} accepts {plural(len(models), 'model')}")
    if len(models) == 1:
        lines.append(f"Compiled {models[0].name} to target/{models[0].compiled_path}:")
        stored = [name for name, is_stored in compiled.models_read(models[0]).items() if is_stored]
        lines += [f"It reads the stored output of {', '.join(stored)}"] if stored else []
        lines += ["", excerpt(models[0].sql.strip("\n"), LONGEST_SQL)]
    else:
        lines.append(f"Compiled {plural(len(models), 'model')} to target/compiled/{compiled.project.name}/")
    return "\n".join(lines)


def compiled_json(
    compiled: CompiledProject, models: Sequence[CompiledModel], warnings: Sequence[Finding], spark: str | None = None
) -> str:
    """Returns the models and the warnings as one JSON object."""
    content = {
        "succeeded": True,
        "project": compiled.project.name,
        "checked_by_spark": spark,
        "models": [
            {
                "unique_id": model.unique_id,
                "compiled_path": f"target/{model.compiled_path}",
                "compiled_sql": model.sql,
                "reads": {name: "stored" if stored else "view" for name, stored in compiled.models_read(model).items()},
            }
            for model in models
        ],
        "findings": findings_json(warnings),
    }
    return json.dumps(content, indent=2)
