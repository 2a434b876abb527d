"""Connectors as values, and their table: which jars each Spark version needs, and their checksums.

A release that Maven Central does not have for a Spark version is replaced by the newest one that was seen to work with
that Spark in this project's tests (Spark's internal APIs change between minor versions, so this cannot be derived).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Jar:
    """One file in a Maven repository: its coordinate `group:artifact:version`, and the SHA-256 of its bytes."""

    coordinate: str
    sha256: str

    @property
    def path(self) -> str:
        """The path of the file in a Maven repository."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.name}"

    @property
    def name(self) -> str:
        """The name of the file."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


@dataclass(frozen=True)
class ConnectorRelease:
    """The jars of a connector for one minor version of Spark.

    `stands_in` is the version of the release if it was made for an earlier Spark and works on this one too; it is
    empty for a release that was made for this Spark.
    """

    jars: tuple[str, ...]
    stands_in: str = ""


@dataclass(frozen=True)
class Connector:
    """A connector: its releases by minor version of Spark, such as `4.3`.

    `any_spark` are the jars of a connector that does not depend on Spark's version, such as a JDBC driver. `follows`
    says whether a later Spark can use the newest release; otherwise a release works only with its own Spark.
    `settings` are those of a session that uses it; `per_core` are settings that a local session sets to its cores.
    `artifact` is the start of the artifact's name, for a connector without releases.
    """

    name: str
    title: str
    releases: Mapping[str, ConnectorRelease]
    any_spark: tuple[str, ...] = ()
    follows: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    per_core: tuple[str, ...] = ()
    artifact: str = ""

    def release_for(self, spark: str) -> ConnectorRelease | None:
        """Returns the release for a minor version of Spark, None if there is no release that works."""
        if self.any_spark:
            return ConnectorRelease(self.any_spark)
        if spark in self.releases:
            return self.releases[spark]
        newest = max(self.releases, key=_numbers, default="")
        if not newest or not self.follows or _numbers(spark) < _numbers(newest):
            return None
        jars = self.releases[newest].jars
        return ConnectorRelease(jars, jars[0].rpartition(":")[2])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


_KAFKA_42 = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
_KAFKA_41 = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.1",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
_AVRO = ("org.apache.spark:spark-avro_2.13:4.1.1",)
_DELTA = (
    "io.delta:delta-storage:4.4.0",
    "io.delta:delta-kernel-api:4.4.0",
    "io.delta:delta-kernel-defaults:4.4.0",
    "io.delta:delta-kernel-unitycatalog:4.4.0",
)

EXTENSIONS = "spark.sql.extensions"
"""The classes that extend Spark's SQL, separated by commas."""

SESSION_CATALOG = "spark.sql.catalog.spark_catalog"
"""The class of the catalog in which Spark looks for tables that name no catalog."""

CONNECTORS: dict[str, Connector] = {
    each.name: each
    for each in (
        Connector(
            "kafka",
            "Kafka",
            {
                "4.1": ConnectorRelease(_KAFKA_41),
                "4.2": ConnectorRelease(_KAFKA_42),
                "4.3": ConnectorRelease(_KAFKA_42, stands_in="4.2.0"),
            },
            follows=True,
        ),
        Connector(
            "avro",
            "Avro",
            {
                "4.1": ConnectorRelease(_AVRO),
                "4.2": ConnectorRelease(_AVRO, stands_in="4.1.1"),
                "4.3": ConnectorRelease(_AVRO, stands_in="4.1.1"),
            },
            follows=True,
        ),
        Connector(
            "delta",
            "Delta Lake",
            {
                "4.1": ConnectorRelease(("io.delta:delta-spark_4.1_2.13:4.4.0", *_DELTA)),
                "4.2": ConnectorRelease(("io.delta:delta-spark_4.2_2.13:4.4.0", *_DELTA)),
            },
            settings={
                EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
                SESSION_CATALOG: "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            },
            # Delta's default is 50, with which each small commit takes seconds on one machine
            per_core=("spark.databricks.delta.snapshotPartitions",),
        ),
        Connector(
            "iceberg",
            "Iceberg",
            {"4.1": ConnectorRelease(("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",))},
            settings={EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
        ),
        Connector("protobuf", "Protobuf", {}, artifact="spark-protobuf"),
        Connector("postgresql", "PostgreSQL", {}, ("org.postgresql:postgresql:42.7.14",)),
        Connector("mariadb", "MariaDB", {}, ("org.mariadb.jdbc:mariadb-java-client:3.5.11",)),
        Connector("mysql", "MySQL", {}, ("com.mysql:mysql-connector-j:9.7.0",)),
    )
}

JDBC_DRIVERS = {"jdbc:postgresql:": "postgresql", "jdbc:mariadb:": "mariadb", "jdbc:mysql:": "mysql"}
"""The connectors of databases, by the start of a JDBC URL."""

_SUMS = """
com.mysql:mysql-connector-j:9.7.0
    0353648eaa1c91e0f4020c959abf756bc866ffd583df22ae6b6f6e0cbd43eb44
io.delta:delta-kernel-api:4.4.0
    ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11
io.delta:delta-kernel-defaults:4.4.0
    225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b
io.delta:delta-kernel-unitycatalog:4.4.0
    cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa
io.delta:delta-spark_4.1_2.13:4.4.0
    75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10
io.delta:delta-spark_4.2_2.13:4.4.0
    27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead
io.delta:delta-storage:4.4.0
    c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc
org.apache.commons:commons-pool2:2.12.1
    5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef
org.apache.commons:commons-pool2:2.13.1
    f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f
org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0
    3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82
org.apache.kafka:kafka-clients:3.9.1
    7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9
org.apache.kafka:kafka-clients:3.9.2
    014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8
org.apache.spark:spark-avro_2.13:4.1.1
    6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d
org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3
    cb31ffd9c8f5527dba061db8af671d295562092e4f3f5ff42fc249fab8a8fde6
org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0
    64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705
org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.1
    e510adc37b03d01d0a190d0dab472b5538e05eaa77454f7e9477156d7a6820ae
org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.2.0
    641c7947afc8aa1189e433b7c2d305293993c8691bc1c2062d6d4f513b12518c
org.mariadb.jdbc:mariadb-java-client:3.5.11
    42604178b9e57ec08ee0035079961516f086e455d0141f0b22c6eff29fb2fff4
org.postgresql:postgresql:42.7.14
    73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c
"""

_WORDS = _SUMS.split()
SUMS = dict(zip(_WORDS[::2], _WORDS[1::2], strict=True))
"""The SHA-256 of each jar in the table, as Maven Central serves it."""


def jars_of(release: ConnectorRelease) -> tuple[Jar, ...]:
    """Returns the jars of a release with their checksums."""
    return tuple(Jar(coordinate, SUMS[coordinate]) for coordinate in release.jars)
