"""Whether a run exports its metrics by OTLP, from OpenTelemetry's environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from sqlstream.errors import Finding, FindingsError

ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
PROTOCOL = "http/protobuf"

_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def exports_metrics(env: Mapping[str, str]) -> bool:
    """Returns whether the environment turns the export on: OTEL_METRICS_EXPORTER contains otlp, or is not set and an
    endpoint is.

    Raises: FindingsError if the export is on but cannot work.
    """
    if env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporters, endpoint = env.get("OTEL_METRICS_EXPORTER", ""), next(filter(env.get, ENDPOINTS), None)
    if "otlp" not in exporters.split(",") if exporters else endpoint is None:
        return False
    why = f"{'OTEL_METRICS_EXPORTER' if exporters else endpoint} turns the export on"
    protocol = next((env[name] for name in PROTOCOLS if env.get(name)), PROTOCOL)
    if protocol != PROTOCOL:
        raise FindingsError([_wrong_protocol(protocol, why)])
    if not all(map(_is_installed, _PACKAGES)):
        raise FindingsError([_not_installed(why)])
    return True


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ModuleNotFoundError, ValueError):  # a parent package is missing
        return False


def _not_installed(why: str) -> Finding:
    return Finding(
        "missing-package",
        "metrics cannot be exported to OpenTelemetry, because its SDK is not installed",
        why,
        "install the extra `otel`, for example `pip install 'sqlstream[otel]'`, or set OTEL_METRICS_EXPORTER=none",
    )


def _wrong_protocol(protocol: str, why: str) -> Finding:
    return Finding(
        "missing-package",
        f"metrics cannot be exported to OpenTelemetry by {protocol}",
        f"{why}; sqlstream exports by {PROTOCOL} only",
        f"set OTEL_EXPORTER_OTLP_METRICS_PROTOCOL={PROTOCOL}, with an endpoint for it (usually port 4318)",
    )
