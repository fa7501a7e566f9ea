"""The pictures of /cellar: `python -m benchmarks.cellar_pictures` writes them to docs/.

They show the cellar that the tests make anew, in German and English, with 3, 80 and 800 wines.
"""

from pathlib import Path
from typing import Final

from agent.cellar.picture import describe_picture, draw
from agent.i18n import use_language
from db.wines.lists.cellar import read_cellar
from tests.cellars import YEAR, collect, export_inventory

FOLDER: Final = Path(__file__).parents[1] / "docs"
COUNTS: Final = (3, 80, 800)
LANGUAGES: Final = ("de", "en")


def main() -> None:
    """Draw all pictures."""
    for count in COUNTS:
        items = read_cellar(export_inventory(collect(count))).items
        for language in LANGUAGES:
            with use_language(language):
                picture = describe_picture(items, YEAR)
            path = FOLDER / f"cellar-{language}-{count}.png"
            path.write_bytes(draw(picture))
            print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
