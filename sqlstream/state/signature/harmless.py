"""What takes part in a query and is known not to change its state. Everything else that takes part in it counts.

This is the whole list, each with its reason; `docs/state.md` prints it (`tests/tools/make_changes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Harmless:
    """Names of one kind, separated by spaces, that have no part in the content of a state, and the reason. `*` in a
    name matches any text.
    """

    text: str
    reason: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names."""
        return tuple(self.text.split())


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _names(entries: Iterable[Harmless]) -> frozenset[str]:
    return frozenset(name for entry in entries for name in entry.names)


OPERATORS = (
    Harmless(
        "LocalLimit",
        "the part of a LIMIT in each partition; the GlobalLimit above it, which counts, has the same number",
    ),
    Harmless(
        "Repartition RepartitionByExpression RebalancePartitions",
        "hints that distribute the same rows to other tasks; an aggregate distributes them by its keys anyway",
    ),
    Harmless(
        "CollectMetrics",
        "it counts rows for the progress of a batch, such as corrupt records",
    ),
)
"""Operators of Spark's optimized plan that return the rows of their input."""

PLAN_FIELDS = (
    Harmless(
        "child left right children",
        "the inputs of an operator, which count themselves",
    ),
    Harmless(
        "nodeId qualifier",
        "numbers and names that Spark gives for this session only",
    ),
    Harmless(
        "unrequiredChildIndex",
        "input columns that nothing reads",
    ),
)
"""Fields of operators without a part in their rows."""

EXPRESSION_FIELDS = (
    Harmless(
        "child left right children branches elseValue predicate trueValue falseValue func aggregateFunction",
        "the operands of an expression, which count themselves; the code of Python functions is in the ledger",
    ),
    Harmless(
        "name qualifier exprId resultId jvmId nonInheritableMetadataKeys",
        "names and numbers: a column is the expression that computes it. Names inside types and structs count",
    ),
    Harmless(
        "metadata explicitMetadata",
        "comments and watermark marks of columns; watermarks count themselves",
    ),
    Harmless(
        "mode",
        "whether an aggregate is partial, which Spark decides when it plans a batch",
    ),
    Harmless(
        "nullable",
        "derived from the operands",
    ),
    Harmless(
        "queryContext origin",
        "where the expression is in the SQL, for error messages",
    ),
    Harmless(
        "hint",
        "how Spark should join",
    ),
)
"""Fields of expressions without a part in their value."""

UNREAD = (
    Harmless(
        "dataSource relation rdd source sourceProvider provider table scan data options extraOptions catalog "
        "catalogTable identifier",
        "what a table or stream reads: its declaration in sources.yml counts, and the rows of tables in the SQL",
    ),
    Harmless(
        "func pythonRunnerConf timeoutConf",
        "the code of Python models and functions is in the ledger",
    ),
    Harmless(
        "session queryContext origin resultId nodeId dedupSpec hint stats keyOrdering",
        "the session, positions in the SQL, numbers, statistics, and orders derived from types",
    ),
)
"""Fields that are not read from Spark."""

SETTINGS = (
    Harmless(
        "spark.sql.shuffle.partitions spark.sql.streaming.stateStore.providerClass "
        "spark.sql.streaming.multipleWatermarkPolicy spark.sql.streaming.*.stateFormatVersion "
        "spark.sql.streaming.statefulOperator.useStrictDistribution "
        "spark.sql.streaming.queryEvolution.enable*Evolution spark.sql.streaming.stateStore.encodingFormat "
        "spark.sql.streaming.stateStore.compression.codec spark.sql.streaming.stateStore.rocksdb.formatVersion",
        "the checkpoint keeps the value that it was written with",
    ),
    Harmless(
        "spark.sql.shuffle.* spark.sql.shuffleDependency.* spark.sql.shuffleExchange.* spark.sql.adaptive.* "
        "spark.sql.autoBroadcastJoinThreshold spark.sql.maxBroadcastTableSize spark.sql.broadcast* "
        "spark.sql.exchange.reuse spark.sql.leafNodeDefaultParallelism spark.sql.shuffledHashJoinFactor "
        "spark.sql.join.preferSortMergeJoin spark.sql.maxSinglePartitionBytes spark.sql.subquery.* "
        "spark.sql.requireAllClusterKeysFor* spark.sql.sources.v2.bucketing.* spark.sql.bucketing.* "
        "spark.sql.sources.bucketing.* spark.sql.limit.* spark.sql.cbo.* spark.sql.statistics.*",
        "how Spark distributes and joins rows",
    ),
    Harmless(
        "spark.sql.codegen.* spark.sql.columnVector.* spark.sql.inMemoryColumnarStorage.* spark.sql.sort.* "
        "spark.sql.subexpressionElimination.* spark.sql.*.buffer.in.memory.threshold spark.sql.*.spill* "
        "spark.sql.objectHashAggregate.* spark.sql.execution.use*AggregateExec spark.sql.execution.reuseSubquery "
        "spark.sql.execution.arrow.maxRecordsPer* spark.sql.execution.arrow.maxBytesPer* "
        "spark.sql.execution.arrow.compression.* spark.sql.execution.python.udf.m* spark.sql.*.udf.buffer.size "
        "spark.sql.*.columnar*BatchSize spark.sql.*.enable*VectorizedReader spark.sql.window*Exec.* "
        "spark.sql.planner.* spark.sql.cache.* spark.sql.defaultCacheStorageLevel",
        "how Spark executes a plan, in which batches and with how much memory",
    ),
    Harmless(
        "spark.sql.files.maxPartition* spark.sql.files.openCostInBytes spark.sql.files.minPartitionNum "
        "spark.sql.sources.parallelPartitionDiscovery.* spark.sql.sources.fileCompressionFactor "
        "spark.sql.sources.ignoreDataLocality spark.sql.sources.useListFilesFileSystemList "
        "spark.sql.metadataCacheTTLSeconds spark.sql.filesourceTableRelationCacheSize "
        "spark.sql.orc.filterPushdown spark.sql.parquet.filterPushdown* spark.sql.avro.filterPushdown* "
        "spark.sql.csv.parser.inputBufferSize",
        "how files are split and listed, and which rows are skipped early that a filter removes anyway",
    ),
    Harmless(
        "spark.sql.files.ignoreMissingFiles",
        "a file that was deleted before it was read has no rows in the state, with or without an error",
    ),
    Harmless(
        "spark.sql.files.maxRecordsPerFile spark.sql.*.compression.codec spark.sql.avro.*level "
        "spark.sql.avro.zstandard.* spark.sql.*RebaseModeInWrite spark.sql.parquet.outputTimestampType "
        "spark.sql.parquet.writeLegacyFormat spark.sql.parquet.fieldId.write.enabled "
        "spark.sql.parquet.output.committer.class spark.sql.sources.outputCommitterClass "
        "spark.sql.sources.commitProtocolClass spark.sql.streaming.commitProtocolClass "
        "spark.sql.sources.partitionOverwriteMode spark.sql.maxConcurrentOutputFileWriters "
        "spark.sql.storeAssignmentPolicy spark.sql.variant.writeShredding.enabled",
        "how rows are written; the state has rows before that",
    ),
    Harmless(
        "spark.sql.streaming.stateStore.*napshot* spark.sql.streaming.stateStore.*aintenance* "
        "spark.sql.streaming.stateStore.rocksdb.* spark.sql.streaming.stateStore.minDeltasForSnapshot "
        "spark.sql.streaming.stateStore.*LaggingStoresToReport spark.sql.streaming.stateStore.multiplierFor* "
        "spark.sql.streaming.stateStore.rowChecksum.* spark.sql.streaming.stateStore.*Validation.enabled "
        "spark.sql.streaming.stateStore.fileChecksum* spark.sql.streaming.stateStore.numStateStoreInstanceMetrics* "
        "spark.sql.streaming.stateStore.unloadOnCommit spark.sql.streaming.checkpoint.* "
        "spark.sql.streaming.*atchesToRetain* spark.sql.streaming.fileSink.log.* "
        "spark.sql.streaming.fileSource.log.* spark.sql.streaming.fileSource.cleaner.* "
        "spark.sql.streaming.asyncLogPurge.enabled spark.sql.streaming.metadataCache.enabled "
        "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart spark.sql.streaming.checkpointLocation "
        "spark.sql.streaming.forceDeleteTempCheckpointLocation spark.sql.streaming.ratioExtraSpace*",
        "how the checkpoint is stored, checked and cleaned, not what is in it",
    ),
    Harmless(
        "spark.sql.streaming.stopTimeout spark.sql.streaming.stopActiveRunOnRestart "
        "spark.sql.streaming.pollingDelay spark.sql.streaming.numRecentProgressUpdates "
        "spark.sql.streaming.noDataProgressEventInterval spark.sql.streaming.metricsEnabled "
        "spark.sql.streaming.continuous.* spark.sql.streaming.ui.* spark.sql.streaming.unsupportedOperationCheck "
        "spark.sql.streaming.triggerAvailableNowWrapper.enabled spark.sql.streaming.noDataMicroBatches.enabled "
        "spark.sql.streaming.kafka.useDeprecatedOffsetFetching",
        "when batches run, what is checked before the first, and what is reported about them",
    ),
    Harmless(
        "spark.sql.ui.* spark.sql.debug* spark.sql.event.* spark.sql.planChange* spark.sql.maxPlanStringLength "
        "spark.sql.maxMetadataStringLength spark.sql.repl.* spark.sql.redaction.* spark.sql.error.* "
        "spark.sql.*Listeners spark.sql.extendedExplainProviders spark.sql.*LogLevel spark.sql.*Log.level "
        "spark.sql.pyspark.udf.profiler spark.sql.pyspark.jvmStacktrace.enabled spark.sql.execution.pyspark.udf.* "
        "spark.sql.*QueryContext* spark.sql.stackTracesIn* spark.sql.warehouse.dir spark.sql.maven.* "
        "spark.sql.hive.thriftServer.* spark.sql.thrift*erver.* spark.sql.cli.* spark.sql.pipelines.* "
        "spark.sql.catalogImplementation spark.sql.artifact.* spark.sql.extensions",
        "logs, pages, messages, other programs, and where Spark keeps its own files",
    ),
    Harmless(
        "spark.hadoop.*.impl spark.hadoop.*.impl.* spark.hadoop.*.connection.* spark.hadoop.*.threads.* "
        "spark.hadoop.*.multipart.* spark.hadoop.*block.size spark.hadoop.*buffer* spark.hadoop.*.attempts.* "
        "spark.hadoop.*retry* spark.hadoop.*timeout* spark.hadoop.*committer* spark.hadoop.*.upload* "
        "spark.hadoop.*.readahead* spark.hadoop.*.input.fadvise spark.hadoop.*.ssl.* spark.hadoop.*.path.style.access "
        "spark.hadoop.*.proxy.* spark.hadoop.*.paging.* spark.hadoop.*.prefetch* spark.hadoop.*.metadatastore.* "
        "spark.hadoop.*.change.detection.* spark.hadoop.*.user.agent.* spark.hadoop.*.encryption* "
        "spark.hadoop.*.umask* spark.hadoop.mapreduce.fileoutputcommitter.* spark.hadoop.mapreduce.output.* "
        "spark.hadoop.mapreduce.job.* spark.hadoop.mapreduce.task.* spark.hadoop.mapreduce.map.* "
        "spark.hadoop.mapreduce.reduce.* spark.hadoop.mapreduce.input.fileinputformat.* spark.hadoop.mapred.output.* "
        "spark.hadoop.mapred.m*.split.size spark.hadoop.dfs.client.* "
        "spark.hadoop.dfs.replication spark.hadoop.ipc.* spark.hadoop.hadoop.security.* spark.hadoop.yarn.* "
        "spark.hadoop.*.endpoint.region spark.hadoop.*.assumed.role.* spark.hadoop.*.create.* "
        "spark.hadoop.*.performance* spark.hadoop.*.audit.*",
        "how Hadoop reaches, reads and writes files; other places of files, such as `fs.s3a.endpoint`, count",
    ),
)
"""Settings of the target (`spark.sql.*` and `spark.hadoop.*`) that change no result."""

RUNTIME_SETTINGS = (
    Harmless(
        "spark.app.* spark.master spark.submit.* spark.jars* spark.files* spark.archives* spark.remote spark.api.mode "
        # neither spark.yarn.appMasterEnv.* nor spark.kubernetes.driverEnv.*: Python code can read those variables
        "spark.home spark.logConf spark.logLineage spark.log.* spark.driver.* spark.executor.* spark.yarn.[!a]* "
        "spark.yarn.a[!p]* spark.kubernetes.[!d]* spark.kubernetes.driver.* spark.deploy.* spark.port.* spark.local.* "
        "spark.worker.* spark.standalone.* spark.cores.max spark.connect.* spark.repl.* spark.pyspark.* "
        "spark.executorEnv.PYTHONPATH",  # on YARN, Spark sets it to its own files
        "where Spark runs, and with what; the versions of jars and packages are compared by themselves",
    ),
    Harmless(
        "spark.memory.* spark.storage.* spark.shuffle.* spark.reducer.* spark.network.* spark.rpc.* spark.broadcast.* "
        "spark.io.* spark.serializer* spark.kryo* spark.closure.* spark.rdd.* spark.default.parallelism "
        "spark.cleaner.* spark.scheduler.* spark.task.* spark.stage.* spark.speculation* spark.dynamicAllocation.* "
        "spark.locality.* spark.excludeOnFailure.* spark.barrier.* spark.resources.* spark.unsafe.* spark.buffer.* "
        "spark.checkpoint.* spark.max* spark.decommission.* spark.python.worker.* spark.python.authenticate.* "
        "spark.python.task.* spark.python.daemon.* spark.python.sql.dataFrameDebugging.*",
        "how Spark distributes its work and its memory",
    ),
    Harmless(
        "spark.ui.* spark.eventLog.* spark.history.* spark.metrics.* spark.extraListeners spark.python.profile* "
        "spark.acls.* spark.admin.* spark.modify.* spark.user.groups.* spark.redaction.* spark.ssl.* spark.security.* "
        "spark.kerberos.* spark.authenticate* spark.plugins* spark.appStateStore.* spark.appStatusStore.* "
        "spark.org.apache.hadoop.* spark.sqlstream.*",
        "pages, logs, access, and sqlstream itself",
    ),
)
"""Settings of Spark's runtime. SQL reads only `spark.sql.*` and `spark.hadoop.*`. Python code can read all settings, so
there those that are not listed count, such as `spark.my.factor` and `spark.executorEnv.*`.
"""

SHOWN_SETTINGS = (
    Harmless(
        "spark.sql.parser.* spark.sql.ansi.doubleQuotedIdentifiers spark.sql.ansi.enforceReservedKeywords "
        "spark.sql.ansi.relationPrecedence spark.sql.groupBy* spark.sql.orderByOrdinal spark.sql.analyzer.* "
        "spark.sql.lateralColumnAlias.* spark.sql.retainGroupColumns spark.sql.stableDerivedColumnAlias.* "
        "spark.sql.crossJoin.enabled spark.sql.pivotMaxValues spark.sql.cteRecursion* spark.sql.operatorPipe* "
        "spark.sql.variable.substitute spark.sql.view.maxNestedViewDepth spark.sql.selfJoinAutoResolveAmbiguity "
        "spark.sql.timestampType spark.sql.optimizer.* spark.sql.constraintPropagation.enabled "
        "spark.sql.runSQLOnFiles spark.sql.functionResolution.* spark.sql.tvf.* "
        "spark.sql.allowNamedFunctionArguments spark.sql.timeType.enabled spark.sql.prioritizeOrdinal*",
        "they decide how Spark reads SQL and makes its plan; the plans are compared",
    ),
)
"""Settings whose effect Spark's plan shows completely."""

VALUE_SETTINGS = (
    Harmless(
        "spark.sql.json.* spark.sql.jsonGenerator.* spark.sql.csv.* spark.sql.xml.* spark.sql.files.* spark.hadoop.* "
        "spark.sql.session.timeZone spark.sql.mapKeyDedupPolicy spark.sql.legacy.timeParserPolicy "
        "spark.sql.legacy.castComplexTypesToString.* spark.sql.legacy.sizeOfNull "
        "spark.sql.legacy.negativeIndexInArrayInsert spark.sql.icu.caseMappings.enabled "
        "spark.sql.parser.escapedStringLiterals spark.sql.optimizer.*",
        "they change values, but not the types of columns",
    ),
)
"""Settings after which the output has the same columns. After another one, only Spark knows them."""

OPTIONS = (
    Harmless(
        """
        maxFilesPerTrigger maxBytesPerTrigger maxFileAge latestFirst fileNameOnly cleanSource sourceArchiveDir
        maxCachedFiles discardCachedInputRatio rowsPerBatch numPartitions maxOffsetsPerTrigger minOffsetsPerTrigger
        maxTriggerDelay minPartitions maxRecordsPerPartition
        """,
        "when rows are read, and how many at once",
    ),
    Harmless(
        "failOnDataLoss ignoreMissingFiles ignoreCorruptFiles",
        "what happens with rows that are missing or damaged; the state has none of them, because the query has failed",
    ),
    Harmless(
        "user password driver groupIdPrefix fetchOffset.* kafkaConsumer.pollTimeoutMs kafka.* schema.registry*",
        "how to connect; but `kafka.isolation.level` counts",
    ),
)
"""Options of sources that do not change what a row contains."""

STREAM_OPTIONS = (
    Harmless(
        """
        startingOffsets startingTimestamp startingOffsetsByTimestamp startingOffsetsByTimestampStrategy endingOffsets
        startingVersion stream-from-timestamp
        """,
        "where the first batch begins; the checkpoint has gone on from there",
    ),
    Harmless(
        "kafka.bootstrap.servers url",
        "other brokers and topics are refused on their own",
    ),
)
"""Options that do not count for a stream. A static table is read from its start each time, so there they count."""

STATIC_OPTIONS = (
    Harmless(
        "partitionColumn lowerBound upperBound fetchsize queryTimeout",
        "how many connections read a table, and how fast; the bounds filter no rows",
    ),
    Harmless(
        """
        ssl* *Timeout tcpKeepAlive ApplicationName autoReconnect defaultRowFetchSize keytab principal refreshKrb5Config
        connectionProvider
        """,
        "how to connect, as an option or in the `url`",
    ),
)
"""Options of static tables of databases that do not change which rows they have."""

ISOLATION = "kafka.isolation.level"
"""Whether Kafka returns records of transactions that were not committed. It counts, unlike Kafka's other options."""

SOURCE_KEYS = (
    Harmless(
        "description tags meta mask freshness loaded_at_field config location locations written",
        "words about the table, tests and checks",
    ),
    Harmless("previous_name source name", "the name of the reader in the checkpoint decides, and is compared itself"),
    Harmless(
        "on_corrupt quarantine_sink corrupt_of",
        "where records go that cannot be read; you can change it at any time",
    ),
    Harmless(
        "schema_changes",
        "what happens to fields that are not declared; the column that they can add is compared with the others, and "
        "the content of CSV says that columns are found by name",
    ),
    Harmless("data_tests", "the view of the source has them, and those that leave out rows are filters there"),
    Harmless("changes", "the option of Delta that it sets is compared, and so are the columns"),
    Harmless("refresh mode", "when a static table is read; a stream that becomes one is another plan"),
    Harmless("watermark", "the reader of the query has it, and Spark's plan has it as an operator"),
    Harmless("stored", "the ledger names stored outputs, and its own section compares them"),
)
"""Keys of a source's table that are not compared as its content."""

PLAIN = _words(
    """
    attributereference literal alias and or not equalto equalnullsafe lessthan lessthanorequal greaterthan
    greaterthanorequal in inset isnull isnotnull count min max first last collectlist collectset
    aggregateexpression createnamedstruct getstructfield coalesce if casewhen knownnullable knownnotnull
    knownfloatingpointnormalized normalizenanandzero precisetimestampconversion timewindow explode posexplode
    createarray getarraystructfields getjsonobject unixseconds unixmillis unixmicros secondstotimestamp
    millistotimestamp microstotimestamp timestampaddinterval substring length startswith endswith contains
    """
)
"""Expressions that read no setting: their results are the same with any."""

_TEXT = _words("lower upper initcap")
"""Expressions that read the setting of letter cases (spark.sql.icu.caseMappings.enabled) only."""

_ARITHMETIC = _words("add subtract multiply divide integraldivide remainder pmod unaryminus abs sum average")
_KNOWN = _TEXT | _ARITHMETIC | _words("cast gettimestamp size elementat getarrayitem")
"""Expressions that read only the settings that `READERS` says: all but those of texts also the mode of ANSI."""


@dataclass(frozen=True)
class Readers:
    """What reads settings. `formats`: formats of sources, if a column of theirs has one of the `types` (a pattern).
    Formats that sqlstream does not know read all. `functions`: Spark's expressions, in lower case. Or `free`:
    expressions that do not read the settings, while all others can.
    """

    formats: frozenset[str] = frozenset()
    types: str = ""
    functions: frozenset[str] | None = None
    free: frozenset[str] = frozenset()
    free_without_decimals: frozenset[str] = frozenset()


_JSON, _PYTHON = _words("json jsontostructs"), Readers(functions=_words("python"))
_OF_FILES = _words("json csv xml text binaryfile orc parquet avro delta iceberg table")

READERS = {
    **dict.fromkeys(
        (
            "spark.hadoop.fs.",
            "spark.hadoop.textinputformat.",
            "spark.hadoop.io.",
            "spark.hadoop.mapreduce.",
            "spark.hadoop.mapred.",
        ),
        Readers(_OF_FILES, functions=frozenset()),
    ),
    "spark.hadoop.parquet.": Readers(_words("parquet delta iceberg"), functions=frozenset()),
    "spark.sql.jsonGenerator.": Readers(functions=_words("structstojson")),
    "spark.sql.json.": Readers(_words("json"), functions=_JSON),
    "spark.sql.legacy.castComplexTypesToString.": Readers(functions=_words("cast")),
    "spark.sql.csv.": Readers(_words("csv"), functions=_words("csvtostructs")),
    "spark.sql.xml.": Readers(_words("xml"), functions=_words("xmltostructs")),
    "spark.sql.parquet.": Readers(_words("parquet delta iceberg"), functions=frozenset()),
    "spark.sql.orc.": Readers(_words("orc"), functions=frozenset()),
    "spark.sql.avro.": Readers(_words("avro"), functions=_words("avrodatatocatalyst")),
    "spark.sql.execution.pandas": _PYTHON,
    "spark.sql.execution.arrow.": _PYTHON,
    "spark.sql.execution.pythonUD": _PYTHON,
    "spark.sql.pyspark.": _PYTHON,
    "spark.sql.mapKeyDedupPolicy": Readers(
        _words("json xml"),
        "map",
        functions=_words(
            "createmap mapfromarrays mapfromentries mapconcat stringtomap transformkeys jsontostructs xmltostructs"
        ),
    ),
    "spark.sql.caseSensitive": Readers(
        _words("parquet orc avro xml delta iceberg jdbc table python"), free=PLAIN | _KNOWN | _JSON
    ),
    "spark.sql.legacy.timeParserPolicy": Readers(
        _words("json csv xml"), "timestamp|timestamp_ntz|date|time", free=PLAIN | _KNOWN - {"gettimestamp"}
    ),
    "spark.sql.ansi.enabled": Readers(free=PLAIN | _TEXT),
    "spark.sql.decimalOperations.allowPrecisionLoss": Readers(
        free=PLAIN | _KNOWN - _ARITHMETIC, free_without_decimals=_ARITHMETIC
    ),
    "spark.sql.legacy.sizeOfNull": Readers(free=PLAIN | _KNOWN - {"size"}),
    **dict.fromkeys(
        (
            "spark.sql.chunkBase64String.enabled",
            "spark.sql.function.concatBinaryAsString",
            "spark.sql.function.eltOutputAsString",
            "spark.sql.legacy.createHashOnMapType",
            "spark.sql.legacy.negativeIndexInArrayInsert",
        ),
        Readers(free=PLAIN | _KNOWN),
    ),
    "spark.sql.icu.caseMappings.enabled": Readers(free=PLAIN | _KNOWN - _TEXT),
}
"""What reads settings, by the start of their names. All expressions and sources can read other settings."""

GROUPS = (
    ("Settings of the target", SETTINGS),
    ("Settings of Spark's runtime", RUNTIME_SETTINGS),
    ("Settings that Spark's plan shows", SHOWN_SETTINGS),
    ("Settings that change values only", VALUE_SETTINGS),
    ("Options of sources", OPTIONS),
    ("Options of streams", STREAM_OPTIONS),
    ("Options of static tables", STATIC_OPTIONS),
    ("Keys of a source's table", SOURCE_KEYS),
    ("Operators of Spark's plan", OPERATORS),
    ("Fields of operators", PLAN_FIELDS),
    ("Fields of expressions", EXPRESSION_FIELDS),
    ("Fields that are not read from Spark", UNREAD),
)
"""The whole list, with titles, as `docs/state.md` prints it."""

RESULT_OPERANDS = {"Percentile": (1,), "ApproximatePercentile": (1,)}
"""Operands of aggregate functions, by their positions, that only the result needs: the state has all values, or a
sketch of them, and the fractions are applied to it.
"""

OPERAND_FIELDS = _words(
    """
    percentageExpression frequencyExpression accuracyExpression mutableAggBufferOffset inputAggBufferOffset
    relativeSDExpression
    """
)
"""Fields that repeat operands, or say where Spark keeps a buffer. An early signature has them."""

IGNORED_FIELDS = _names(EXPRESSION_FIELDS)
IGNORED_PLAN_FIELDS = _names(PLAN_FIELDS)
UNREAD_FIELDS = _names(UNREAD)
HARMLESS_OPERATORS = _names(OPERATORS)


def is_harmless(setting: str, *, python: bool = False) -> bool:
    """Returns whether a setting of Spark changes no result of any query in SQL, or with code in `python`."""
    if setting.startswith(("spark.sql.", "spark.hadoop.")):
        return _is_in(setting, SETTINGS)
    return not python or _is_in(setting, RUNTIME_SETTINGS)


def is_harmless_option(option: str, *, static: bool = False) -> bool:
    """Returns whether an option of a stream, or of a static table, does not change which rows it has and what they
    contain. Spark ignores its letter case.
    """
    name, of_stream = option.lower(), _is_in_any_case(option, STREAM_OPTIONS)
    if name == ISOLATION or (static and of_stream):
        return False
    return of_stream or _is_in_any_case(option, (*OPTIONS, *STATIC_OPTIONS) if static else OPTIONS)


def was_harmless_option(option: str) -> bool:
    """Returns whether an earlier sqlstream left an option out of its ledgers, also that of a static table."""
    return is_harmless_option(option) and option.lower() not in ("startingversion", "stream-from-timestamp")


def is_shown(setting: str) -> bool:
    """Returns whether Spark's plan shows all that a setting changes."""
    return _is_in(setting, SHOWN_SETTINGS)


def keeps_types(setting: str) -> bool:
    """Returns whether the columns of any query have the same types with another value of a setting."""
    return _is_in(setting, VALUE_SETTINGS)


def _is_in(setting: str, entries: Iterable[Harmless]) -> bool:
    return any(fnmatchcase(setting, name) for entry in entries for name in entry.names)


def _is_in_any_case(option: str, entries: Iterable[Harmless]) -> bool:
    return any(fnmatchcase(option.lower(), name.lower()) for entry in entries for name in entry.names)
