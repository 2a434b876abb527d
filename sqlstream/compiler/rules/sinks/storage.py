"""Rules about where queries keep their data."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding
from sqlstream.project.files.paths import is_absolute


@rule("relative-storage")
def relative_storage(compiled: CompiledProject) -> list[Finding]:
    """A relative folder is a different folder on each machine of a cluster."""
    target = compiled.project.target
    if target.is_local or is_absolute(target.storage):
        return []
    return [
        Finding(
            "relative-storage",
            f"target `{target.name}` runs on {target.master} but stores its data in the relative folder "
            f"`{target.storage}`",
            "each machine would write to its own folder",
            "set storage: to a URI that all machines can reach, such as s3a://bucket/folder or hdfs://host/folder",
            target.location,
        )
    ]
