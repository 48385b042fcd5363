"""Settings of a report on a cluster, and whose go first."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from linklogs import cluster_settings
from linklogs.cluster_settings import is_cluster, submitted_session

ADAPTIVE = "spark.sql.adaptive.enabled"
ZONE = "spark.sql.session.timeZone"


@pytest.mark.parametrize(
    ("master", "is_one"), [("local[*]", False), (None, False), ("spark://h:7077", True), ("yarn", True)]
)
def test_a_master_that_is_not_this_process_is_a_cluster(master: str | None, is_one: bool) -> None:
    assert is_cluster(master) is is_one


def test_what_a_session_was_given_stays_but_for_what_records_are_read_with(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = {ADAPTIVE: "true", "spark.sql.parquet.mergeSchema": "true", "spark.ui.port": "1"}
    monkeypatch.setattr(cluster_settings, "ALWAYS", {**cluster_settings.ALWAYS, **new})
    spark.conf.set(ZONE, "Europe/Zurich")
    try:
        submitted_session()
        assert [spark.conf.get(name) for name in (ADAPTIVE, ZONE)] == ["false", "UTC"]
        assert spark.conf.get("spark.sql.parquet.mergeSchema") == "true"
    finally:
        spark.conf.set("spark.sql.parquet.mergeSchema", "false")
        spark.conf.set(ZONE, "UTC")
