"""A table as Parquet, and as the packed folder of a dataset."""

import io

from tests.studies.imports.files import zipped

TABLE = [
    {
        "question": f"Question number {n}, as it was asked?",
        "model": model,
        "answer": f"{model} answers number {n}.",
        "likes": n / 2,
    }
    for n in range(3)
    for model in ("ada", "bo")
]
TABLE_OUTPUTS = {(model, n, 0): f"{model} answers number {n}." for n in range(3) for model in ("ada", "bo")}


def parquet(rows=TABLE, **options) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out, **options)
    return out.getvalue()


CARD = b"---\nlicense: mit\n---\n# A dataset\n"
FOLDER = zipped(
    {
        "set/README.md": CARD,
        "set/data/train-00000-of-00002.parquet": parquet(TABLE[:4]),
        "set/data/train-00001-of-00002.parquet": parquet(TABLE[4:]),
    }
)
TEXTS = {
    "Parquet": ("table.parquet", parquet(), TABLE_OUTPUTS),
    "a folder of a dataset": ("set.zip", FOLDER, TABLE_OUTPUTS),
}
