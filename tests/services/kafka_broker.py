"""A real Kafka broker for tests: one node, without ZooKeeper, on loopback, from Maven Central's jars."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sqlstream.project.connectors.lock import read_lock
from sqlstream.spark.jvm.class_archive import cache_folder
from sqlstream.spark.jvm.jars import Repository, fetch_jar
from sqlstream.spark.jvm.java import java_path
from tests.services.service_process import LOOPBACK, ServiceProcess, free_ports

VERSION = "4.1.0"

_LOCK = Path(__file__).parent / "kafka.lock"

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT
listener.name.secure.sasl.enabled.mechanisms=PLAIN
listener.name.secure.plain.sasl.jaas.config={module} required user_app="{password}";
ssl.keystore.location={store}
ssl.keystore.password={password}
ssl.keystore.type=PKCS12
log.dirs={folder}/logs
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=0
auto.create.topics.enable=false
"""


PASSWORD = "canary-4711"

_LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True)
class KafkaBroker:
    """A running broker: the address for clients, and its process.

    At `secure_servers` it has a certificate, which `trust_store` trusts, and lets in only the user `app`; `PASSWORD` is the
    password of both.
    """

    servers: str
    process: ServiceProcess
    secure_servers: str
    trust_store: Path

    def stop(self) -> None:
        """Stops the broker."""
        self.process.stop()


def start_kafka(folder: Path, env: Mapping[str, str] = os.environ) -> KafkaBroker:
    """Starts a broker that keeps its data in `folder`. Downloads its jars into the user's cache if they are missing."""
    folder.mkdir(parents=True, exist_ok=True)
    class_path = os.pathsep.join(map(str, _broker_jars(env)))
    port, secure, controller = free_ports(3)
    java = java_path(env)
    if java is None:
        raise RuntimeError("the broker needs Java")
    properties, store = folder / "server.properties", folder / "broker.p12"
    _make_certificate(java, store)
    values = {"port": port, "secure": secure, "controller": controller, "folder": folder, "store": store}
    text = _PROPERTIES.format(**values, password=PASSWORD, module=_LOGIN_MODULE)
    properties.write_text(text, encoding="utf-8")
    command = [java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path]
    _format(command, properties)
    process = ServiceProcess([*command, "kafka.Kafka", str(properties)], port, folder / "broker.log")
    process.start()
    return KafkaBroker(f"{LOOPBACK}:{port}", process, f"{LOOPBACK}:{secure}", store)


def _make_certificate(java: str, store: Path) -> None:
    """Writes a new key with a certificate that it has signed itself."""
    tool = Path(java).with_name("keytool")
    options = ["-genkeypair", "-alias", "broker", "-keyalg", "EC", "-dname", "CN=127.0.0.1", "-storetype", "PKCS12"]
    command = [str(tool), *options, "-keystore", str(store), "-storepass", PASSWORD]
    subprocess.run(command, capture_output=True, text=True, check=True)


def _broker_jars(env: Mapping[str, str]) -> list[Path]:
    cache = cache_folder(env)
    if cache is None:
        raise RuntimeError("there is no folder for a cache")
    jars = read_lock(_LOCK.read_text(encoding="utf-8")).jars[VERSION]["kafka-broker"]
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(lambda jar: fetch_jar(jar, cache / "jars", [Repository()], lambda *_: None), jars))


def _format(command: list[str], properties: Path) -> None:
    """Prepares the folder of the broker's data, as `kafka-storage.sh format` does."""
    tool = [*command, "kafka.tools.StorageTool"]
    made = subprocess.run([*tool, "random-uuid"], capture_output=True, text=True, check=True)
    form = [*tool, "format", "--standalone", "-t", made.stdout.split()[-1], "-c", str(properties)]
    subprocess.run(form, capture_output=True, text=True, check=True)
