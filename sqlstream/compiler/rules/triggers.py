"""Rules about triggers."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Finding

SUPPORTED = frozenset({"default", "interval", "available_now", "once"})


@rule("unsupported-trigger")
def unsupported_triggers(compiled: CompiledProject) -> list[Finding]:
    """Continuous and real-time triggers are read, but this version does not run them."""
    return [
        Finding(
            "unsupported-trigger",
            f"`{model.name}` asks for a {model.config.trigger.kind.replace('_', '-')} trigger",
            "this version of sqlstream runs micro-batches only",
            "use trigger='10 seconds', 'available_now' or 'once'",
            model.place_of("trigger"),
        )
        for model in compiled.models.values()
        if model.output is not None and model.config.trigger.kind not in SUPPORTED
    ]
