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
    `artifact` is the start of the artifact's name, for a connector without releases. With `loads_once`, a Spark can
    load its classes only once, or needs them when it starts: over Spark Connect, where each session loads the jars that
    it gets, the server itself must have them. Spark keeps the driver of a database that the first session brings, whose
    classes cannot be loaded after that session.
    """

    name: str
    title: str
    releases: Mapping[str, ConnectorRelease]
    any_spark: tuple[str, ...] = ()
    follows: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    per_core: tuple[str, ...] = ()
    artifact: str = ""
    loads_once: bool = False

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

_AWS_MODULES = """
annotations apache-client arns auth aws-core aws-json-protocol aws-query-protocol aws-xml-protocol checksums
checksums-spi crt-core endpoints-spi eventstream http-auth http-auth-aws http-auth-aws-eventstream http-auth-spi
http-client-spi identity-spi json-utils kms metrics-spi netty-nio-client profiles protocol-core regions retries
retries-spi s3 s3-transfer-manager sdk-core sts third-party-jackson-core utils utils-lite
"""
_AWS_SDK = tuple(f"software.amazon.awssdk:{name}:2.57.8" for name in _AWS_MODULES.split())
"""The modules of Amazon's SDK that Hadoop uses: 12 MB, instead of its `bundle` with 686 MB."""

_S3 = (*_AWS_SDK, "org.reactivestreams:reactive-streams:1.0.4")
_S3_HADOOP_34 = (
    "org.apache.hadoop:hadoop-aws:3.4.2",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.2.1",
    *_S3,
)
_S3_HADOOP_35 = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
    *_S3,
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
            loads_once=True,
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
            loads_once=True,
        ),
        Connector(
            "iceberg",
            "Iceberg",
            {"4.1": ConnectorRelease(("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",))},
            settings={EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
            loads_once=True,
        ),
        Connector(
            "s3",
            "S3",
            {
                "4.1": ConnectorRelease(_S3_HADOOP_34),
                "4.2": ConnectorRelease(_S3_HADOOP_35),
                "4.3": ConnectorRelease(_S3_HADOOP_35),
            },
            follows=True,
            loads_once=True,
        ),
        Connector("protobuf", "Protobuf", {}, artifact="spark-protobuf"),
        Connector("postgresql", "PostgreSQL", {}, ("org.postgresql:postgresql:42.7.14",), loads_once=True),
        Connector("mariadb", "MariaDB", {}, ("org.mariadb.jdbc:mariadb-java-client:3.5.11",), loads_once=True),
        Connector("mysql", "MySQL", {}, ("com.mysql:mysql-connector-j:9.7.0",), loads_once=True),
    )
}

JDBC_DRIVERS = {"jdbc:postgresql:": "postgresql", "jdbc:mariadb:": "mariadb", "jdbc:mysql:": "mysql"}
"""The connectors of databases, by the start of a JDBC URL."""

FILE_SYSTEMS = {"s3a": "s3"}
"""The connectors of file systems, by the scheme of a URI."""

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
org.apache.hadoop:hadoop-aws:3.4.2
    d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9
org.apache.hadoop:hadoop-aws:3.5.0
    66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa
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
org.reactivestreams:reactive-streams:1.0.4
    f75ca597789b3dac58f61857b9ac2e1034a68fa672db35055a8fb4509e325f28
software.amazon.awssdk:annotations:2.57.8
    825c182a148f8731cc10fb2352b02b2c95aef4f7ce021216c68fabf1b4f496f2
software.amazon.awssdk:apache-client:2.57.8
    b45e150ab8ea7b99820b72a2a8726708d379d06130d26f3f49a4e96975d71da1
software.amazon.awssdk:arns:2.57.8
    94e7bf9437b79c0c30bfa14d5ac532b032b5d3025a63a928e811306fe61f0c83
software.amazon.awssdk:auth:2.57.8
    007edd3374577a53295c341bc71370af53e4da7f646862c39669f19ef2eb3fdc
software.amazon.awssdk:aws-core:2.57.8
    0eaee342efc79341a1c02c8a283a1d47c4c5fb85d962fe94de56a5cc45e95e31
software.amazon.awssdk:aws-json-protocol:2.57.8
    b0ad71a4f265ae455912b25b52c54caf182d4c78105f5cb8f2d4d972332990e2
software.amazon.awssdk:aws-query-protocol:2.57.8
    997f6212e71077f378e85c34c6f6c2d23056ca7ffb93de287cab23d5a3ce5799
software.amazon.awssdk:aws-xml-protocol:2.57.8
    fbfe1adb9542a0989c0d37fcb65bccd332d13928627905d94b38836c13dd9395
software.amazon.awssdk:checksums-spi:2.57.8
    d2d7f87a48022c8e819c0c29495b1296c54549a9b1123e3ad5bd154a5de2c298
software.amazon.awssdk:checksums:2.57.8
    d3f5b7ac0d055d26aa9565257a431bc608a89f53098689ccb6e49a28eb44522e
software.amazon.awssdk:crt-core:2.57.8
    c4ae0e0bb5a5777459a2823588ec4220d58bd0046996fb8ca44b0b6101cf23a6
software.amazon.awssdk:endpoints-spi:2.57.8
    aa9984db787239ebba4c72f7610f21cc24ab8e51b09d9e723a460c4981f317c3
software.amazon.awssdk:eventstream:2.57.8
    5cb6a34a0054d0388b5f6998d3d6ae55e59fcd231cea3537429ced67e5394bb0
software.amazon.awssdk:http-auth-aws-eventstream:2.57.8
    506672e012c2d7dbf54485697f710b1bc36911e482dfd2f03379ada991ccabab
software.amazon.awssdk:http-auth-aws:2.57.8
    a9e2ab376db220b3c72704496cd19401efde529e8a4a833c3462b67a759eca00
software.amazon.awssdk:http-auth-spi:2.57.8
    09e032dbe524e72d48a969ed34208178aec77e0e5cdb15621aa684d15bbf17b0
software.amazon.awssdk:http-auth:2.57.8
    78b7b9ccce2f7c352f8e70217ee76b7e7f70bd36d7ea319b7c4e8e6e39210388
software.amazon.awssdk:http-client-spi:2.57.8
    879c6c44f42539253d6ac501e634dace51def6e4eac206e6a2c5b12deec7092a
software.amazon.awssdk:identity-spi:2.57.8
    6cd55d9bce3d8fc96729c8786ca451a7592db22f65564ee43fcf5977e1b0df12
software.amazon.awssdk:json-utils:2.57.8
    5445cf5b375e086aa2f2fa73a60820abaa996406b129a5d67f2010fe0408dcd2
software.amazon.awssdk:kms:2.57.8
    2ffd01b6a5bbb04df1e7773c9fec192d8cf412cad96d80ac64772341bf72b4a6
software.amazon.awssdk:metrics-spi:2.57.8
    2aa0e5e1bf0859175f296908b4c2291900b8a3092ff74fedc6bb4c6545eecc19
software.amazon.awssdk:netty-nio-client:2.57.8
    0a0b9b24a28034d86402bc422a1f0d6bf6fe4ecbdad4c8d19af3fa2e7b95cd92
software.amazon.awssdk:profiles:2.57.8
    a569d92320886a14f8efb8c26cc897c4b0f830c1dddff39f17c7506365ec7efb
software.amazon.awssdk:protocol-core:2.57.8
    60c84ae2ab04ae11f30482e1a16ede98dd98ca7c677583282d21cb3143e8c4de
software.amazon.awssdk:regions:2.57.8
    9b781252515549243a899829ff9a0e26be84dbe79d852fbd4fdc8c9882191839
software.amazon.awssdk:retries-spi:2.57.8
    0489225c14e579515cc7988b84298901aca0f993e2305f6c2261beed1d834a93
software.amazon.awssdk:retries:2.57.8
    41f07d1cf30158410e9cb1ded8db92329733c2345f0fb9d6ed85f3887e1b1e0a
software.amazon.awssdk:s3-transfer-manager:2.57.8
    bc08e3794c62da49995bb1a4ca810754ba8425e830cee81c2fa6762cdf89139d
software.amazon.awssdk:s3:2.57.8
    bc57e1d16550a1dc4f464adaacedf8451fcf890bd8b201cd76fac322c4576927
software.amazon.awssdk:sdk-core:2.57.8
    c51385c9954073e7182bf78c28ca5d20079637c0693681a835081df522b4e737
software.amazon.awssdk:sts:2.57.8
    75b6153c8f5aaee75278545739a770bc83f66219e87d13f061c098ec34e97418
software.amazon.awssdk:third-party-jackson-core:2.57.8
    ae23adf5b08e5e8a8470532094d2d43eea62dcd2ab0fc2c037dad77118041d17
software.amazon.awssdk:utils-lite:2.57.8
    8d26d5bbf01c70e2beddbe1e576d034d8222e6283d134f7e7ce0bbaa8faa47e2
software.amazon.awssdk:utils:2.57.8
    5ccc52464978b8b866510194587790ef35bc509724753e4f668ec1604709d7b0
software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.2.1
    11029552e37408e41e689b20150f4b372e0b4f232de321ccafd0fcf443cdfb5a
software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1
    4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e
"""

_WORDS = _SUMS.split()
SUMS = dict(zip(_WORDS[::2], _WORDS[1::2], strict=True))
"""The SHA-256 of each jar in the table, as Maven Central serves it."""


def jars_of(release: ConnectorRelease) -> tuple[Jar, ...]:
    """Returns the jars of a release with their checksums."""
    return tuple(Jar(coordinate, SUMS[coordinate]) for coordinate in release.jars)
