from pyspark.sql.datasource import DataSource


def send(rows, batch_id):
    rows.foreach(print)


class Service(DataSource):
    pass
