"""The YAML of exposures as pydantic models: what uses the outputs of a project, as in dbt."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from sqlstream.project.configuration.fields import Document, Names, Text
from sqlstream.project.configuration.trigger import invalid
from sqlstream.project.wording import given

_NAME = re.compile(r"\w[\w-]*")


def _parse_exposure_name(value: object) -> str:
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise invalid(f"cannot be {given(value)}", "use only letters, digits and `_`; put other text in `label`")


_ExposureName = Annotated[
    str, BeforeValidator(_parse_exposure_name), WithJsonSchema({"type": "string", "pattern": r"^\w[\w-]*$"})
]

_TAGS = "Tags for selection, besides those of `config`."
_CONFIG_TAGS = "Tags for selection. They replace those of folders."
_META = "Any values; sqlstream copies them to the manifest."


class OwnerDocument(Document):
    """Who is responsible for an exposure. Other keys are allowed, as in dbt."""

    model_config = ConfigDict(frozen=True, extra="allow")

    called: ClassVar[str] = "an owner"

    name: Text | None = Field(None, description="The owner's name.")
    email: Names = Field((), description="The owner's email address, or several.")

    @model_validator(mode="after")
    def _has_a_name(self) -> OwnerDocument:
        if self.name is None and not self.email:
            raise invalid("needs a `name` or an `email`", "for example, use `owner: {email: data@example.com}`")
        return self


class ExposureConfig(Document):
    """The keys of an exposure that `config` and the folders of project.yml can set."""

    called: ClassVar[str] = "an exposure's configuration"

    enabled: bool = Field(True, description="Whether the exposure is part of the project.")
    tags: Names = Field((), description=_CONFIG_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)


class ExposureProperties(Document):
    """An exposure: a dashboard, an application or another use of the project's outputs."""

    called: ClassVar[str] = "an exposure"

    name: _ExposureName = Field(description="The name for the selector `exposure:name`.")
    label: Text | None = Field(None, description="A title for readers, with any characters.")
    type: Literal["dashboard", "notebook", "analysis", "ml", "application"] = Field(
        description="What it is: dashboard, notebook, analysis, ml or application."
    )
    maturity: Literal["high", "medium", "low"] | None = Field(
        None, description="How much its users rely on it: high, medium or low."
    )
    url: Text | None = Field(None, description="Its address.")
    description: Text = Field("", description="A description for readers.")
    owner: OwnerDocument = Field(description="Who is responsible for it.")
    depends_on: tuple[Text, ...] = Field(
        (), description="What it reads: a list of `ref('model')` and `source('source', 'table')`."
    )
    tags: Names = Field((), description=_TAGS)
    meta: dict[str, Any] = Field(default_factory=dict, description=_META)
    config: ExposureConfig | None = Field(None, description="The configuration.")
