"""The columns of a table, written down for Spark: what it reads is what was meant."""

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from tideover.scenarios.spark.settings import schema_text

NESTED = pa.schema(
    {
        "run": pa.string(),
        "failures.0.at": pa.float64(),
        "a `b`, c:d": pa.bool_(),
        "tasks": pa.list_(pa.struct({"task": pa.int64(), "hosts.of": pa.list_(pa.string())})),
        "found": pa.binary(),
    }
)


def test_a_schema_in_words():
    assert schema_text(pa.schema({"run": pa.string(), "n": pa.int64()})) == "struct<`run`:string,`n`:bigint>"


@pytest.mark.spark
def test_spark_reads_what_was_meant(spark):
    """Spark's parser gives back the very columns, whatever they are called and however nested."""
    rows = spark.range(1).mapInArrow(lambda batches: iter(()), schema_text(NESTED))
    assert rows.schema == from_arrow_schema(NESTED)
