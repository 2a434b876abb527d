"""From compiled SQL back to the lines that it was written on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sqlstream.compiler.cache.rendering import CachedRenderer
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.configured import ConfiguredModel
from sqlstream.location import Place


class Places(Protocol):
    """What finds the place of a character of compiled SQL; a `CompiledProject` does."""

    def locate(self, unique_id: str, offset: int) -> Place:
        """Returns the place of the character at `offset` (0-based) of a model's compiled SQL."""


class CachedPlaces:
    """The places of `models`, which the cache remembers from one compilation to the next."""

    def __init__(
        self, models: Mapping[str, CompiledModel], enabled: Mapping[str, ConfiguredModel], renderer: CachedRenderer
    ) -> None:
        self._models, self._enabled, self._renderer = models, enabled, renderer

    def locate(self, unique_id: str, offset: int) -> Place:
        """Returns the place of the character at `offset` (0-based) of a model's compiled SQL."""
        model = self._models[unique_id]
        known = self._enabled[model.name].rendered
        return model.place_at(offset, lambda at: self._renderer.locate(known, at))
