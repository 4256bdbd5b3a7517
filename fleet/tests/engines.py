"""Runs the questions on other engines: ClickHouse (chdb) and Apache Spark (pyspark). With these settings, which docs/guide/fleet.md also lists, the
SQL files run unchanged."""
import json
import pathlib

from spawnscope_fleet.dataset import TABLES

class ClickHouse:
    """ClickHouse in this process. It needs these settings to give NULL for outer joins as in standard SQL, to read directories as partitions, and
    to find columns that only some files have. It does not decode names of directories."""

    SETTINGS = {
        "join_use_nulls": 1,
        "use_hive_partitioning": 1,
        "session_timezone": "'UTC'",
        "schema_inference_make_columns_nullable": "'auto'",
        "schema_inference_mode": "'union'",
    }
    JOB = "nullIf(decodeURLComponent(job), '__HIVE_DEFAULT_PARTITION__') AS job"

    def __init__(self, dataset, store=None, tables=TABLES):
        """`store` is the address of an object store without TLS, in which `dataset` is BUCKET/PREFIX."""
        from chdb import session

        self.session = session.Session()
        for name, value in self.SETTINGS.items():
            self.session.query(f"SET {name} = {value}")
        if store:
            keys = "access_key_id = 'test', secret_access_key = 'test'"
            self.session.query(f"CREATE NAMED COLLECTION fleet AS url = '{store}/{dataset}/', {keys}")
        for table in tables:
            files = f"{table}/*/*/*.parquet"
            source = f"s3(fleet, filename = '{files}', format = 'Parquet')" if store else f"file('{dataset}/{files}', Parquet)"
            self.session.query(f"CREATE VIEW {table} AS SELECT * REPLACE ({self.JOB}) FROM {source}")

    def ask(self, sql):
        settings = ", ".join(f"{name} = {value}" for name, value in self.SETTINGS.items())
        answer = self.session.query(f"{sql}\nSETTINGS {settings}, output_format_json_quote_64bit_integers = 0", "JSONEachRow")
        return [json.loads(line) for line in str(answer).splitlines() if line]

    def close(self):
        self.session.close()


class Spark:
    """Apache Spark. It needs these settings to treat double quotes as in standard SQL, where they enclose names. It decodes each byte of the name of
    a directory as a character."""

    SETTINGS = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    }

    JOB = "decode(encode(job, 'ISO-8859-1'), 'UTF-8')"
    # hadoop-aws must have the version of Spark's own Hadoop.
    STORE_SETTINGS = {
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }

    def __init__(self, dataset, master, store=None, tables=TABLES):
        """`store` is the address of an object store without TLS, in which `dataset` is BUCKET/PREFIX."""
        import pyspark
        from pyspark.sql import SparkSession
        from pyspark.sql.functions import expr

        builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.shuffle.partitions", "4").config("spark.driver.memory", "1g")
        settings = dict(self.SETTINGS)
        if store:
            (hadoop,) = pathlib.Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar")
            version = hadoop.stem.rsplit("-", 1)[1]
            settings |= self.STORE_SETTINGS
            settings |= {"spark.jars.packages": f"org.apache.hadoop:hadoop-aws:{version}", "spark.hadoop.fs.s3a.endpoint": store}
            dataset = f"s3a://{dataset}"
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        for table in tables:
            files = self.spark.read.option("mergeSchema", "true").parquet(f"{dataset}/{table}")
            files.withColumn("job", expr(self.JOB)).createOrReplaceTempView(table)

    def ask(self, sql):
        return [row.asDict() for row in self.spark.sql(sql).collect()]

    def close(self):
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        self.spark.stop()
        # The JVM ends when its standard input is closed. Waits for that, so that its CPU time counts as that of a child.
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=60)
        SparkContext._gateway = SparkContext._jvm = None
