from pyspark.sql.functions import udf


@udf("string")
def cleaned(text):
    return text.strip()


def plain(text):
    return text
