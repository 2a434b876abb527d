NAME = "orders"


def model(sqlstream, spark):
    sqlstream.config(sink=NAME, tags=["a"])
    größe = sqlstream.var("größe"); orders = sqlstream.source("shop", NAME)
    helper(sqlstream)
    return orders.join(sqlstream.reff("large"), "id")


def helper(context):
    return context.ref("large")
