"""The options of Delta Lake and Iceberg (`tests/spark/test_lake_options.py` compares them with both).

Delta's are in `DeltaOptions`, Iceberg's in `SparkReadOptions` and `SparkWriteOptions`.
"""

from __future__ import annotations

from sqlstream.project.formats import option_types as takes
from sqlstream.project.formats.file_options import options

DELTA = {
    **options("excludeRegex schemaTrackingLocation schemaLocation streamingSourceTrackingId", use="stream"),
    **options(
        "failOnDataLoss ignoreChanges ignoreDeletes ignoreFileDeletion skipChangeCommits", takes.BOOLEAN, "stream"
    ),
    **options("maxBytesPerTrigger", takes.SIZE, "stream"),
    **options("maxFilesPerTrigger", takes.COUNT, "stream"),
    **options(
        "allowSourceColumnDrop allowSourceColumnRename allowSourceColumnTypeChange", takes.ALWAYS_OR_VERSION, "stream"
    ),
    **options("readChangeData readChangeFeed", takes.BOOLEAN, "source"),
    **options("startingVersion", takes.STARTING_VERSION, "source"),
    **options("startingTimestamp", takes.TIME, "source"),
    **options("endingVersion", takes.LONG_NATURAL, "batch"),
    **options("endingTimestamp", takes.TIME, "batch"),
    **options("versionAsOf", takes.LONG_NATURAL, "batch_only"),
    **options("timestampAsOf", takes.TIME, "batch_only"),
    **options("compression", takes.codec("none", "uncompressed", "snappy", "gzip", "lz4", "zstd", "brotli"), "sink"),
    **options("dataChange mergeSchema optimizeWrite overwriteSchema", takes.BOOLEAN, "sink"),
    **options("maxRecordsPerFile", takes.ANY_LONG, "sink"),
    **options("partitionOverwriteMode replaceOn replaceUsing replaceWhere targetAlias userMetadata", use="sink"),
    **options("txnAppId txnVersion", use="sink"),
}

ICEBERG = {
    **options("branch"),
    **options("compression-codec", use="sink"),
    **options("format-version", takes.COUNT, "sink"),
    **options("as-of-timestamp snapshot-id tag", use="source"),  # refused, with a finding that names the new ones
    **options("versionAsOf timestampAsOf", use="batch"),
    **options("start-snapshot-id end-snapshot-id", takes.ANY_LONG, "batch"),
    **options("start-timestamp end-timestamp", takes.MILLISECONDS, "batch"),
    **options("batch-size lookback", takes.COUNT, "source"),
    **options("file-open-cost split-size", takes.LONG_COUNT, "source"),
    **options("aggregate-push-down-enabled locality vectorization-enabled", takes.BOOLEAN, "source"),
    **options("stream-from-timestamp", takes.MILLISECONDS, "stream"),
    **options(
        "async-micro-batch-planning-enabled streaming-skip-delete-snapshots streaming-skip-overwrite-snapshots",
        takes.BOOLEAN,
        "stream",
    ),
    **options("streaming-max-files-per-micro-batch streaming-max-rows-per-micro-batch", takes.COUNT, "stream"),
    **options("async-queue-preload-file-limit async-queue-preload-row-limit", takes.LONG_NATURAL, "stream"),
    **options("streaming-snapshot-polling-interval-ms", takes.LONG_NATURAL, "stream"),
    **options("write-format delete-format", takes.one_of("parquet", "avro", "orc"), "sink"),
    **options("target-file-size-bytes target-delete-file-size-bytes advisory-partition-size", takes.LONG_COUNT, "sink"),
    **options(
        "check-nullability check-ordering fanout-enabled merge-schema mergeSchema shred-variants "
        "use-merge-append-for-streaming use-table-distribution-and-ordering",
        takes.BOOLEAN,
        "sink",
    ),
    **options("output-spec-id output-sort-order-id variant-inference-buffer-size", takes.NATURAL, "sink"),
    **options("distribution-mode", takes.one_of("none", "hash", "range"), "sink"),
    **options("delete-granularity", takes.one_of("file", "partition"), "sink"),
    **options("isolation-level", takes.one_of("serializable", "snapshot"), "sink"),
    **options("compression-level compression-strategy overwrite-mode validate-from-snapshot-id", use="sink"),
}
