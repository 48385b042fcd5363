"""What a session is opened with, so that a small report is made quickly."""

from __future__ import annotations

from pyspark.sql import SparkSession

from linklogs.session import NAMED


def test_classes_of_column_functions_are_imported_by_their_names(spark: SparkSession) -> None:
    assert {name.rpartition(".")[2] for name in NAMED} <= set(dir(spark.sparkContext._jvm))
