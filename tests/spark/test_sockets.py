"""A run listens only on this machine, and starts no Spark UI unless it is configured."""

from __future__ import annotations

import os
import signal
from ipaddress import ip_address
from pathlib import Path

import pytest

from tests.spark.conftest import PROJECT, ProjectFolder, descendants, sockets, wait_for

LISTENING = "0A"
"""The state of a socket in /proc/net/tcp (include/net/tcp_states.h)."""
UI_PORTS = range(4040, 4057)
"""The ports of Spark's UI; it listens on the first free one."""


def listening(pid: int) -> set[tuple[str, int]]:
    """Returns the addresses and ports on which a process or its descendants listen."""
    inodes = {inode for process in descendants(pid) for inode in sockets(process)}
    return {
        (_address(local), int(local.split(":")[1], 16))
        for table in ("tcp", "tcp6")
        for local, state, inode in _table(table)
        if state == LISTENING and inode in inodes
    }


def _table(name: str) -> list[tuple[str, str, str]]:
    path = Path(f"/proc/net/{name}")
    lines = path.read_text().splitlines()[1:] if path.exists() else []
    return [(fields[1], fields[3], fields[9]) for fields in map(str.split, lines)]


def _address(local: str) -> str:
    """Parses an address such as `0100007F:1F90`: words of four bytes, each in reverse order."""
    raw = bytes.fromhex(local.split(":")[0])
    return str(ip_address(b"".join(raw[i : i + 4][::-1] for i in range(0, len(raw), 4))))


def is_loopback(address: str) -> bool:
    """Returns whether only this machine can reach `address`; an IPv4 address may be written as IPv6."""
    ip = ip_address(address)
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).is_loopback


@pytest.mark.slow
@pytest.mark.parametrize("has_ui", [False, True], ids=["as usual", "with the UI"])
def test_a_run_listens_on_this_machine_only(orders: ProjectFolder, has_ui: bool) -> None:
    """Python, Java and their children listen on loopback only; a configured UI shows that the check finds sockets."""
    if has_ui:
        orders.write(
            {"project.yml": PROJECT.replace("storage: store", "storage: store, spark: {spark.ui.enabled: 'true'}")}
        )
    model = "{{ config(sink='nowhere', trigger='1 hour') }} select id from {{ source('shop', 'orders') }}"
    orders.write({"models/all.sql": model})
    process = orders.command("run")
    try:
        wait_for(process, "all batch 0:")
        found = listening(process.pid)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()

    ui = {(address, port) for address, port in found if port in UI_PORTS}
    assert found
    assert bool(ui) is has_ui
    assert [address for address, _ in found - ui if not is_loopback(address)] == []
