"""Reads cloudtrail_catalog.json: the calls and callers of the CloudTrail example, and its templates."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

Json = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Record = dict[str, Json]
Words = Mapping[str, str | int]

ACCOUNT = "123456789012"
PARTNER_ACCOUNT = "111122223333"


@dataclass(frozen=True)
class Call:
    """One kind of API call: which groups of callers make it, how often, and templates of what AWS records."""

    source: str
    name: str
    weight: float
    by: tuple[str, ...]
    request: Json = None
    response: Json = None
    resources: Mapping[str, str] | None = None
    writes: bool = False
    data: bool = False


@dataclass(frozen=True)
class Caller:
    """One identity: its group, its kind in `userIdentity.type`, and where its calls come from."""

    group: str
    kind: str
    name: str
    weight: float
    addresses: tuple[str, ...]
    agents: tuple[str, ...]
    session: str = ""
    mfa: bool = False
    endpoint: str | None = None

    @property
    def is_inside_aws(self) -> bool:
        """Whether AWS itself makes the call, so that there is no address and no TLS to record."""
        return self.kind in ("AWSService", "AWSInternal")


@dataclass(frozen=True)
class Catalog:
    """Everything that records are drawn from."""

    calls: tuple[Call, ...]
    callers: tuple[Caller, ...]
    words: Mapping[str, list[str]]
    errors: Mapping[str, list[list[str]]]

    def choices_for(self, caller: Caller, region: str) -> list[Call]:
        """Return the calls of a caller's group in a region; IAM is global and writes to us-east-1 alone."""
        calls = [call for call in self.calls if caller.group in call.by]
        return [call for call in calls if call.source != "iam" or region == "us-east-1"]

    def draw_words(self, rng: random.Random, region: str, time: datetime) -> Words:
        """Return one value for each word that a template may use."""
        expiration = time + timedelta(hours=1)
        words: dict[str, str | int] = {
            "account": ACCOUNT,
            "region": region,
            "date": f"{time:%Y/%m/%d}",
            "expiration": f"{expiration:%b} {expiration.day}, {expiration:%Y, %I:%M:%S %p}",
            "count": rng.randint(1, 9),
            "size": rng.randint(200, 90_000),
        }
        for word, values in self.words.items():
            words[word] = rng.choice(values).format_map(words)
        return words


def load_catalog() -> Catalog:
    """Return the catalog that lies beside this file."""
    raw = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    calls = tuple(Call(**call) for call in raw["calls"])
    return Catalog(calls, tuple(Caller(**caller) for caller in raw["callers"]), raw["words"], raw["errors"])


def fill(template: Json, words: Words) -> Json:
    """Return a template with its words put in; a text that is one `{word}` keeps the word's type."""
    if isinstance(template, dict):
        return {key: fill(value, words) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(value, words) for value in template]
    if not isinstance(template, str):
        return template
    return words[template[1:-1]] if template[1:-1] in words else template.format_map(words)
