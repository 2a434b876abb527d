def model(sqlstream, spark):
    sqlstream.config(sink="file", unique_key="id", sequence_by="_kafka_offset")
    return sqlstream.source("crm", "customers").selectExpr("row.*", "_kafka_offset")
