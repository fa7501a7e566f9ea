"""The picture of /cellar: `python -m benchmarks.cellar_picture` writes docs/cellar.png.

It shows the cellar of 800 wines that the tests make anew.
"""

from pathlib import Path
from typing import Final

from agent.cellar.picture import describe_picture, draw
from db.wines.lists.cellar import read_cellar
from tests.cellars import YEAR, collect, export_inventory

PICTURE: Final = Path(__file__).parents[1] / "docs" / "cellar.png"
WINES: Final = 800


def main() -> None:
    """Draw the picture."""
    items = read_cellar(export_inventory(collect(WINES))).items
    PICTURE.write_bytes(draw(describe_picture(items, YEAR)))
    print(f"{PICTURE.name}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
