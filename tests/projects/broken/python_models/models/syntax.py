def model(sqlstream, spark):
    return sqlstream.source("shop", "orders")).where("id > 1")
