"""Reads the Avro schemas of a subject from a schema registry.

https://docs.confluent.io/platform/current/schema-registry/develop/api.html; other registries have this interface too.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

from sqlstream.errors import FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.documents import SchemaRegistry
from sqlstream.project.messages.avro import PinnedSchema
from sqlstream.spark.secrets import Secrets

TIMEOUT_SECONDS = 30.0
"""How long a registry can send nothing."""

_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


class RegistryError(Exception):
    """The registry does not answer as it should; the message is one line without credentials."""


@dataclass(frozen=True)
class RegistryClient:
    """A registry: its address, and the user or the token to log in with."""

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def versions(self, subject: str) -> list[PinnedSchema]:
        """Returns all versions of a subject, also deleted ones, with whose ids messages may still be written.

        Schemas that refer to others contain these. Raises: RegistryError.
        """
        return [self._version(subject, number) for number in self.version_numbers(subject)]

    def version_numbers(self, subject: str) -> list[object]:
        """Returns the numbers of all versions of a subject, also of deleted ones. Raises: RegistryError."""
        numbers = self._get(f"/subjects/{quote(subject, safe='')}/versions?deleted=true")
        if not isinstance(numbers, list):
            raise RegistryError(f"{self.shown} returns no list of versions")
        return numbers

    def _version(self, subject: str, number: object) -> PinnedSchema:
        found = self._entry(subject, number)
        if found.get("schemaType", "AVRO") != "AVRO":
            raise RegistryError(f"version {number} of {subject} is {found['schemaType']}, not Avro")
        try:
            schema = _inlined(json.loads(found["schema"]), self._named(found), set())
            return PinnedSchema(int(found["version"]), int(found["id"]), json.dumps(schema))
        except (KeyError, TypeError, ValueError) as error:
            raise RegistryError(f"{self.shown} returns an invalid schema for version {number} of {subject}") from error

    def _named(self, entry: Mapping[str, Any]) -> dict[str, object]:
        """Returns the schemas that another one refers to, by name."""
        found: dict[str, object] = {}
        for reference in entry.get("references") or ():
            other = self._entry(reference["subject"], reference["version"])
            found |= {**self._named(other), reference["name"]: json.loads(other["schema"])}
        return found

    def _entry(self, subject: str, number: object) -> Mapping[str, Any]:
        found = self._get(f"/subjects/{quote(subject, safe='')}/versions/{number}?deleted=true")
        if not isinstance(found, dict) or not {"id", "version", "schema"} <= found.keys():
            raise RegistryError(f"{self.shown} returns no schema for version {number} of {subject}")
        return found

    def _get(self, path: str) -> object:
        request = urllib.request.Request(self.url.rstrip("/") + path, headers={"Accept": _ACCEPT})  # noqa: S310
        if self.token:
            # unredirected: a server to which the registry redirects does not get the login
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        elif self.username or self.password:
            pair = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {pair}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - the user's own address
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise RegistryError(f"{self.shown}: HTTP {error.code} {error.reason}") from error
        except HTTPException as error:  # its message can contain a password that is in the address
            raise RegistryError(f"{self.shown}: {type(error).__name__}") from None
        except (OSError, ValueError) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise RegistryError(f"{self.shown}: {getattr(reason, 'strerror', None) or reason}") from error

    @property
    def shown(self) -> str:
        """The address without a user or password in it."""
        scheme, mark, rest = self.url.partition("://")
        host, slash, path = rest.partition("/")
        return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def registry_client(registry: SchemaRegistry, location: Location, secrets: Secrets) -> RegistryClient:
    """Returns the client of a registry, which is declared at `location`. Raises: FindingsError for an unset secret."""
    values = {name: getattr(registry, name) for name in ("url", "username", "password", "token")}
    missing = secrets.missing(values, location)
    if missing:
        raise FindingsError(missing)
    return RegistryClient(**secrets.resolve_all(values))


def _inlined(schema: object, named: Mapping[str, object], defined: set[str], namespace: str = "") -> object:
    """Returns a schema that contains the schemas in `named` where it uses them first."""
    if isinstance(schema, str) and schema not in _PRIMITIVES:
        full = schema if "." in schema or not namespace else f"{namespace}.{schema}"
        # Avro allows one definition of a name; later uses only name it
        if full not in named or full in defined:
            return schema
        defined.add(full)
        return _inlined(named[full], named, defined)
    if isinstance(schema, list):
        return [_inlined(each, named, defined, namespace) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inner = str(schema.get("namespace", namespace))
    parts = {
        key: _inlined(value, named, defined, inner) if key in ("type", "items", "values") else value
        for key, value in schema.items()
    }
    if isinstance(schema.get("fields"), list):
        parts["fields"] = [_inlined(each, named, defined, inner) for each in schema["fields"]]
    return parts
