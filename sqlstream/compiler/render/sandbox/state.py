"""The effects of one rendering so far."""

from __future__ import annotations

from sqlstream.compiler.render.sandbox.budget import Budget, RenderLimits
from sqlstream.compiler.render.values import Reads, Reference
from sqlstream.errors import Finding
from sqlstream.project.values import Located, ModelFile


class RenderState:
    """Collects the effects of one rendering. `calls` are the running calls as (path, offset), the outermost first. They
    stay after a failed call, to locate the error.
    """

    def __init__(self, limits: RenderLimits, model: ModelFile | None = None) -> None:
        self.budget = Budget(limits)
        self.model = model
        self.calls: list[tuple[str, int]] = []
        self.references: list[Reference] = []
        self.config: dict[str, Located] = {}
        self.findings: list[Finding] = []
        self.macros_used: dict[str, None] = {}
        self.names_read: set[str] = set()
        self.variables_read: set[str] = set()
        self.environment_read: set[str] = set()
        self.secrets_read: set[str] = set()
        self.logged: list[tuple[str, bool]] = []
        self.quiet = False

    @property
    def reads(self) -> Reads:
        """The names, variables, environment variables and secrets that the rendering has read."""
        read = (self.names_read, self.variables_read, self.environment_read, self.secrets_read)
        return Reads(*(tuple(sorted(names)) for names in read))
