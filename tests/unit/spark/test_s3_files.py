"""What pyarrow's client for S3 gets of Hadoop's settings."""

from __future__ import annotations

import pytest

from sqlstream.spark.storage.s3_files import SETTINGS, S3Files, s3_arguments, unknown_credentials


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({}, {}),
        ({"endpoint.region": "eu-central-1"}, {"region": "eu-central-1"}),
        (
            {"access.key": "a", "secret.key": "b", "session.token": "c"},
            {"access_key": "a", "secret_key": "b", "session_token": "c"},
        ),
        ({"endpoint": "http://h:9/", "path.style.access": "true"}, {"endpoint_override": "h:9", "scheme": "http"}),
        (
            {"endpoint": "h:9", "connection.ssl.enabled": "false"},
            {"endpoint_override": "h:9", "scheme": "http", "force_virtual_addressing": True},
        ),
        ({"endpoint": "h", "path.style.access": "TRUE"}, {"endpoint_override": "h", "scheme": "https"}),
        (
            {"aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"anonymous": True},
        ),
        ({"assumed.role.arn": "arn:aws:iam::1:role/r"}, {}),  # Hadoop reads it only for one provider
        ({"endpoint": "s3.eu-central-1.amazonaws.com"}, {"region": "eu-central-1"}),
        ({"endpoint": "https://s3.amazonaws.com"}, {}),
        ({"endpoint": "s3.us-gov-west-1.amazonaws.com", "endpoint.region": "other"}, {"region": "other"}),
        ({"access.key": "all", "bucket.b.access.key": "own", "bucket.c.access.key": "other"}, {"access_key": "own"}),
    ],
)
def test_settings_become_arguments(settings: dict[str, str], arguments: dict[str, object]) -> None:
    """A setting for one bucket replaces that for all."""
    named = {f"{SETTINGS}{name}": value for name, value in settings.items()}
    assert s3_arguments("b", {**named, "spark.master": "local[2]"}) == arguments


@pytest.mark.parametrize(
    ("provider", "is_known"),
    [
        ("software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider", True),
        (
            "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider, org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
            True,
        ),
        ("org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider", False),
        ("com.example.VaultCredentialsProvider", False),
        ("com.example.MyDefaultCredentialsProvider", False),
    ],
)
def test_only_spark_knows_other_providers(provider: str, *, is_known: bool) -> None:
    """A role that Hadoop assumes, or a class of the user, may have other credentials than pyarrow finds."""
    names = ("aws.credentials.provider", "bucket.b.aws.credentials.provider")
    assert [unknown_credentials({f"{SETTINGS}{name}": provider}) is None for name in names] == [is_known] * 2


@pytest.mark.parametrize(
    ("settings", "path"), [({"access.key": "a"}, "b/k"), ({"endpoint": "x://h"}, "b/k"), ({}, "b//k")]
)
def test_mistakes_in_settings_and_paths_are_os_errors(settings: dict[str, str], path: str) -> None:
    """Pyarrow raises ValueError for them, which would look like a bug of sqlstream."""
    named = {f"{SETTINGS}{name}": value for name, value in {"endpoint.region": "us-east-1", **settings}.items()}
    files = S3Files("b", lambda: named)
    for read in (files.names, files.files, files.read_text, files.modified):
        with pytest.raises(OSError, match=r"\S"):
            read(path)
