"""Reads files on S3 without Spark, with the client of pyarrow and the settings of Hadoop's `s3a`.

Only reads: what a command writes there, it writes with Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from io import UnsupportedOperation
from typing import Any

from sqlstream.state.output_files import StoredFile

S3 = "s3a://"
"""The start of the URIs that Hadoop's client for S3 reads."""

SETTINGS = "spark.hadoop.fs.s3a."
"""The start of the settings of this client."""

_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_KNOWN_PROVIDER = re.compile(
    r"\.(?:Simple|Temporary|Anonymous)AWSCredentialsProvider$|\.IAMInstanceCredentialsProvider$"
    r"|\.(?:Default|EnvironmentVariable|Profile|WebIdentityTokenFile|Container|InstanceProfile)CredentialsProvider$"
)
"""Providers whose credentials pyarrow finds, too."""

_AMAZON = re.compile(r"^(?:https?://)?s3(?:[.-](?P<region>[a-z]+(?:-[a-z]+)+-\d))?\.amazonaws\.com/?$")
"""Amazon's own endpoints, with their region."""

_SECONDS = 20
"""How long to wait for a connection, and for an answer."""


class S3Files:
    """The files of one bucket. Paths are `bucket/key`. `resolve` returns those settings of a target that begin with
    `SETTINGS`, with their secrets. Each method raises OSError; those that would write always do.

    Credentials that the settings do not have come from the environment, a profile or the machine, as for Amazon's own
    clients.
    """

    def __init__(self, bucket: str, resolve: Callable[[], Mapping[str, str]]) -> None:
        self._bucket, self._resolve = bucket, resolve

    def read_text(self, path: str) -> str | None:
        try:
            with _os_errors(), self._client.open_input_stream(path) as stream:
                return bytes(stream.read()).decode("utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> tuple[str, ...]:
        return tuple(sorted(found.base_name for found in self._list(folder, recursive=False)))

    def files(self, folder: str) -> tuple[StoredFile, ...]:
        listed = [found for found in self._list(folder, recursive=True) if found.is_file]
        start = f"{folder.rstrip('/')}/"
        stored = (
            StoredFile(found.path.removeprefix(start), found.size, found.mtime_ns // 1_000_000) for found in listed
        )
        return tuple(sorted(stored))

    def exists(self, path: str) -> bool:
        from pyarrow.fs import FileType

        with _os_errors():
            return bool(self._client.get_file_info(path).type is not FileType.NotFound)

    def modified(self, path: str) -> float | None:
        with _os_errors():
            found = self._client.get_file_info(path)
        return found.mtime_ns / 1e9 if found.is_file else None

    def write_text(self, path: str, text: str) -> None:
        raise UnsupportedOperation(f"only Spark writes {path}, here {len(text)} characters")

    def move(self, source: str, destination: str) -> None:
        raise UnsupportedOperation(f"only Spark moves {source} to {destination}")

    def remove(self, folder: str) -> None:
        raise UnsupportedOperation(f"only Spark removes {folder}")

    def _list(self, folder: str, *, recursive: bool) -> list[Any]:
        from pyarrow.fs import FileSelector

        with _os_errors():
            return list(self._client.get_file_info(FileSelector(folder, allow_not_found=True, recursive=recursive)))

    @cached_property
    def _client(self) -> Any:
        from pyarrow.fs import S3FileSystem, resolve_s3_region  # slow to import

        given = s3_arguments(self._bucket, self._resolve())
        if not given.get("region") and not given.get("endpoint_override"):
            given["region"] = resolve_s3_region(self._bucket)
        return S3FileSystem(connect_timeout=_SECONDS, request_timeout=_SECONDS, **given)


@contextmanager
def _os_errors() -> Iterator[None]:
    """Converts pyarrow's errors about its arguments to OSError, which its other errors are."""
    try:
        yield
    except ValueError as error:
        raise OSError(str(error)) from error


def unknown_credentials(settings: Mapping[str, str]) -> str | None:
    """Returns why only Spark knows the credentials of these settings, None if pyarrow finds the same ones."""
    for name, value in settings.items():
        if name.startswith(SETTINGS) and name.endswith(".credentials.provider"):
            other = next((each for each in value.replace(",", " ").split() if not _KNOWN_PROVIDER.search(each)), None)
            if other is not None:
                return f"only Spark knows the credentials of {other}"
    return None


def s3_arguments(bucket: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """Returns the arguments of pyarrow's client for `bucket`, from Hadoop's `settings` for all buckets and for this
    one (https://hadoop.apache.org/docs/stable/hadoop-aws/tools/hadoop-aws/index.html).
    """
    own = f"{SETTINGS}bucket.{bucket}."
    found = {name.removeprefix(SETTINGS): value for name, value in settings.items() if name.startswith(SETTINGS)}
    found |= {name.removeprefix(own): value for name, value in settings.items() if name.startswith(own)}
    arguments: dict[str, Any] = {
        "access_key": found.get("access.key"),
        "secret_key": found.get("secret.key"),
        "session_token": found.get("session.token"),
        "region": found.get("endpoint.region"),
    }
    if _ANONYMOUS in found.get("aws.credentials.provider", ""):
        arguments["anonymous"] = True
    endpoint = found.get("endpoint", "")
    amazon = _AMAZON.search(endpoint)
    if amazon:
        arguments["region"] = arguments["region"] or amazon["region"]
    elif endpoint:
        secure = "http" if found.get("connection.ssl.enabled", "true").lower() == "false" else "https"
        scheme, separator, host = endpoint.rpartition("://")
        arguments |= {"endpoint_override": host.rstrip("/"), "scheme": scheme if separator else secure}
        # pyarrow then names the bucket in the path by itself
        arguments["force_virtual_addressing"] = found.get("path.style.access", "false").lower() != "true"
    return {name: value for name, value in arguments.items() if value}
