"""A client of Kubernetes' API for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen


class KubernetesError(Exception):
    """The API has refused a request; the text is its message."""


@dataclass(frozen=True)
class KubernetesClient:
    """Creates, reads, changes and deletes objects of API version v1. `kind` is a plural such as `pods`."""

    url: str
    token: str

    def list(self, kind: str, labels: str = "") -> list[dict[str, Any]]:
        """Returns the objects of all namespaces, with the label `name=value` if given."""
        selected = f"?labelSelector={quote(labels)}" if labels else ""
        found: list[dict[str, Any]] = self._ask("GET", f"{kind}{selected}")["items"]
        return found

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """Returns an object. Raises: KubernetesError."""
        return self._ask("GET", f"namespaces/{namespace}/{kind}/{name}")

    def create(self, kind: str, namespace: str, content: dict[str, Any]) -> None:
        """Creates an object. Raises: KubernetesError."""
        self._ask("POST", f"namespaces/{namespace}/{kind}", {"apiVersion": "v1", **content})

    def report(self, kind: str, found: dict[str, Any], status: dict[str, Any]) -> None:
        """Replaces the status of the object `found`. Raises: KubernetesError."""
        about = found["metadata"]
        path = f"namespaces/{about['namespace']}/{kind}/{about['name']}/status"
        self._ask("PUT", path, {**found, "status": status})

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Deletes an object. Raises: KubernetesError."""
        self._ask("DELETE", f"namespaces/{namespace}/{kind}/{name}")

    def _ask(self, method: str, path: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if content is None else json.dumps(content).encode()
        try:
            with urlopen(Request(f"{self.url}/api/v1/{path}", data, headers, method=method)) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except HTTPError as error:
            text = error.read().decode(errors="replace")
            raise KubernetesError(json.loads(text)["message"] if text else error.reason) from error
