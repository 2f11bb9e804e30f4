"""The two pipelines that are run for real: a windowed word count, and a running count of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tideover.models.operators.vocabulary import SENTENCES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Pipeline = Literal["word_count", "running_count"]

_HASHED = 64
"""Bytes that one unit of work hashes."""


def sentences(pipeline: Pipeline) -> tuple[str, ...]:
    """The sentences that the rows are taken from; none where the rows hold keys."""
    return SENTENCES if pipeline == "word_count" else ()


def counts(rows: DataFrame, pipeline: Pipeline, window_s: int, work: int) -> DataFrame:
    """The streaming counts, to be written in update mode.

    window_s: length of the windows, in s. work: extra work per row, in units of 64 bytes hashed with SHA-512
    (no processor that Java knows does that in hardware, so it costs about the same everywhere).
    """
    from pyspark.sql import functions as sf

    column = "sentence" if pipeline == "word_count" else "key"
    if work:
        # Always true, which the optimiser cannot know; done where the rows are read, before the shuffle.
        text = sf.rpad(sf.col(column).cast("string"), _HASHED * work, "-")
        rows = rows.where(sf.length(sf.sha2(text, 512)) == 128)
    if pipeline == "running_count":
        return rows.groupBy("key").count()
    words = rows.withWatermark("stamp", "0 seconds").select(  # rows come in the order of their stamps
        "stamp", sf.explode(sf.split("sentence", " ")).alias("word")
    )
    window = sf.window("stamp", f"{window_s} seconds")
    counted = words.groupBy(window, "word").count()
    return counted.select(sf.unix_timestamp(sf.col("window.start")).alias("start"), "word", "count")
