"""Databases of earlier releases, filled by those releases.

`0.2.0` talked with three people and a group through the Bot API's protocol, without a model: of
wishes, a taste, an allergy, a cellar with Undo, a rating, settings, concerns, `/ask`, a broadcast.
Of its wines and documents only those stayed that the answers name.
"""

import lzma
from pathlib import Path

import psycopg
from sqlalchemy import make_url

HERE = Path(__file__).parent


def restore_release(name: str, url: str) -> None:
    """Fill the empty database at `url` with that of a release."""
    if url.startswith("sqlite"):
        content = lzma.decompress((HERE / f"{name}-sqlite.xz").read_bytes())
        Path(str(make_url(url).database)).write_bytes(content)
        return
    dump = lzma.decompress((HERE / f"{name}-postgres.xz").read_bytes()).decode()
    # Lines with a backslash are for psql.
    statements = "\n".join(
        line for line in dump.split("\n") if not line.startswith("\\")
    )
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statements.encode())
