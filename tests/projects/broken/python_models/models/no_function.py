def model(spark):
    return spark.range(1)
