def model(sqlstream, spark):
    sqlstream.config(sink="lake")
    return sqlstream.source("shop", "orders")
