"""The columns of what Python hands to Spark, as a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def schema_text(schema: pa.Schema) -> str:
    """An Arrow schema as Spark writes one down: ``struct<`run`:string,`point`:bigint>``.

    Given as an object, a text column has a collation of its own over Spark Connect (``string collate
    UTF8_BINARY``, the same thing as ``string``), which Spark writes into the footer of a Parquet file; given
    as a text, it has none either way, and the files are the same.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    return _text(from_arrow_schema(schema))


def _text(kind: Any) -> str:
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(kind, StructType):
        fields = (f"`{field.name.replace('`', '``')}`:{_text(field.dataType)}" for field in kind)
        return f"struct<{','.join(fields)}>"
    if isinstance(kind, ArrayType):
        return f"array<{_text(kind.elementType)}>"
    return str(kind.simpleString())
