"""`python -m benchmarks.pictures MODEL ...`: draw labels and wine lists, and score what is read.

No picture is kept in the repository: `pictures.toml` says what is on each, and how it looks. With
`--draw FOLDER` they are drawn there, and no model is asked.
"""

import argparse
import asyncio
import random
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from agent.engine.messages import LLM
from agent.engine.run import Run
from agent.evals.evaluators import Mark
from agent.senses.pictures import VISION, read_pictures
from agent.senses.sent_files import as_shown
from agent.sommelier.attachment import Attachment
from agent.sommelier.wine import Catalogue, Currency, ReadWine
from agent.tables import StrictModel, read_toml
from agent.text import words
from agent.turn import Deps
from bot.commands.evaluate import open_bench
from bot.commands.output import open_settings
from bot.models import model_of

if TYPE_CHECKING:
    from PIL.Image import Image as Drawn
    from PIL.ImageDraw import ImageDraw

FILE: Final = Path(__file__).with_suffix(".toml")
METRICS: Final = ("shows", "wines", "no_others", "vintages", "prices", "cellar")
"""Whether it was told for what it is; the share of its wines that were read, of what was read that
stands there, of vintages and prices that are right, and of wines of ours that were recognised."""
SAME: Final = 0.75
"""How many of the words of a wine's name were read, if it is that wine."""
UNITS: Final = 1000
"""Pictures are as wide."""


class Look(NamedTuple):
    """How a picture is drawn; it is turned by so many degrees, sizes are pixels."""

    paper: str = "ivory"
    ink: str = "black"
    turned: float = 0.0
    letters: int = 44
    width: int = UNITS


LOOKS: Final = {
    "classic": Look(),
    "dark": Look("#1d2321", "#d9c27c"),
    "narrow": Look(width=640, letters=36),
    "tilted": Look("#f4efe2", "#3a1d1d", turned=7),
    "faint": Look("#efe9dc", "#a89f8d"),
    "small": Look(letters=24),
    "columns": Look(letters=30),
}


class PictureWine(StrictModel):
    """A wine that stands on a label or a list; `known_id` is the same among the starter wines."""

    producer: str
    name: str
    vintage: int | None = None
    region: str = ""
    price: float | None = None
    glass_price: float | None = None
    known_id: str = ""

    @property
    def label(self) -> str:
        """Producer, name and vintage."""
        return " ".join(str(part) for part in (self.producer, self.name, self.vintage) if part)


class Picture(StrictModel):
    """A label or a list to be drawn, with what stands on it."""

    id: str
    kind: Literal["label", "list"]
    look: str
    wines: tuple[PictureWine, ...]
    heading: str = ""
    currency: Currency = Currency.EUR
    smudged: int = 0
    order: str = ""

    @property
    def title(self) -> str:
        """Return what is shown, in a line."""
        return self.heading or self.wines[0].label


class _List(StrictModel):
    title: str
    currency: Currency
    look: str
    wines: list[tuple[int, float, float]]
    smudged: int = 0
    order: str = ""


class _File(StrictModel):
    labels: list[tuple[str, str, str, int, str, str]]
    lists: list[_List]


@cache
def pictures() -> tuple[Picture, ...]:
    """Return the 40 labels and 10 lists.

    Raises:
        ValidationError: the file is not as it must be.
    """
    read = read_toml(_File, FILE)
    bottles = [
        PictureWine(
            producer=producer, name=name, vintage=vintage or None, region=region, known_id=known
        )
        for _, producer, name, vintage, region, known in read.labels
    ]
    labels = [
        Picture(id=f"label-{at:02}", kind="label", look=row[0], wines=(bottle,))
        for at, (row, bottle) in enumerate(zip(read.labels, bottles, strict=True), start=1)
    ]
    lists = [
        Picture(
            id=f"list-{at:02}",
            kind="list",
            heading=listed.title,
            look=listed.look,
            currency=listed.currency,
            smudged=listed.smudged,
            order=listed.order,
            wines=tuple(
                bottles[number - 1].model_copy(
                    update={"price": price, "glass_price": glass or None}
                )
                for number, price, glass in listed.wines
            ),
        )
        for at, listed in enumerate(read.lists, start=1)
    ]
    return (*labels, *lists)


def drawn(picture: Picture) -> bytes:
    """Draw a picture, as a JPEG; the same each time."""
    look = LOOKS[picture.look]
    sheet = _label(picture, look) if picture.kind == "label" else _list(picture, look)
    if look.turned:
        sheet = sheet.rotate(look.turned, expand=True, fillcolor="#6b6257")
    written = BytesIO()
    sheet.save(written, "JPEG", quality=90)
    return written.getvalue()


def plain(text: str) -> str:
    """Leave out accents: the letters that come with Pillow have none, nor signs of currencies."""
    apart = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in apart if not unicodedata.combining(sign))


def _label(picture: Picture, look: Look) -> "Drawn":
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - only where pictures are drawn

    (wine,) = picture.wines
    sheet = Image.new("RGB", (look.width, 1200), look.paper)
    draw, middle = ImageDraw.Draw(sheet), look.width // 2
    draw.rectangle((20, 20, look.width - 20, 1180), outline=look.ink, width=4)
    rows = (
        (200, wine.producer, 1.4),
        (460, wine.name, 1.2),
        (700, str(wine.vintage or ""), 1.8),
        (900, wine.region, 1.0),
        (1080, "75 cl · 12.5 % vol", 0.6),
    )
    for top, text, scale in rows:
        font = ImageFont.load_default(_fitting(text, look.letters * scale, look.width - 80))
        draw.text((middle, top), plain(text), look.ink, font, anchor="mm")
    return sheet


def _fitting(text: str, size: float, width: int) -> float:
    """Return the size of letters at which a text is no wider than this."""
    from PIL import ImageFont  # noqa: PLC0415 - see _label

    return min(size, size * width / max(1.0, ImageFont.load_default(size).getlength(text)))


def lines(picture: Picture) -> Iterator[str]:
    """Yield the lines of a list, as they stand on it."""
    for wine in picture.wines:
        prices = [price for price in (wine.glass_price, wine.price) if price is not None]
        shown = " / ".join(f"{price:.2f}".removesuffix(".00") for price in prices)
        named = f"{wine.producer}, {wine.name} {wine.vintage or ''} · {wine.region}"
        yield f"{plain(named)}   {picture.currency} {shown}"
    if picture.order:
        yield picture.order


def _list(picture: Picture, look: Look) -> "Drawn":
    from PIL import Image, ImageDraw, ImageFilter, ImageFont  # noqa: PLC0415 - see _label

    shown = [*lines(picture), *["Domaine illegible 2019   EUR 40"] * picture.smudged]
    random.Random(picture.id).shuffle(shown)
    wide, high = look.width * 2, 200 + 80 * len(shown)
    sheet = Image.new("RGB", (wide, high), look.paper)
    draw = ImageDraw.Draw(sheet)
    draw.text(
        (wide // 2, 80), plain(picture.heading), look.ink, ImageFont.load_default(60), anchor="mm"
    )
    for at, line in enumerate(shown):
        top = 160 + 80 * at
        font = ImageFont.load_default(_fitting(line, look.letters, wide - 120))
        draw.text((60, top), line, look.ink, font)
        if "illegible" in line:
            box = (0, top - 10, wide, top + 60)
            sheet.paste(sheet.crop(box).filter(ImageFilter.GaussianBlur(18)), box)
    return sheet


def sketched(rows: Sequence[str]) -> bytes:
    """Draw rows of text as a JPEG; a row after `~` is blurred, the row `cat` is a cat."""
    from PIL import Image, ImageDraw, ImageFilter, ImageFont  # noqa: PLC0415 - see _label

    sheet = Image.new("RGB", (760, 60 + 60 * len(rows) + 240 * ("cat" in rows)), "ivory")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(28)
    for number, row in enumerate(rows):
        top = 40 + 60 * number
        if row == "cat":
            _draw_cat(draw, top)
            continue
        draw.text((40, top), plain(row.removeprefix("~")), "black", font)
        if row.startswith("~"):
            box = (0, top - 10, 760, top + 45)
            sheet.paste(sheet.crop(box).filter(ImageFilter.GaussianBlur(9)), box)
    written = BytesIO()
    sheet.save(written, "JPEG", quality=70)
    return written.getvalue()


def _draw_cat(draw: "ImageDraw", top: int) -> None:
    """Draw the face of a cat."""
    draw.polygon([(260, top + 90), (270, top), (340, top + 60)], "gray")
    draw.polygon([(500, top + 90), (490, top), (420, top + 60)], "gray")
    draw.ellipse((250, top + 40, 510, top + 260), "gray")
    for middle in (320, 440):
        draw.ellipse((middle - 22, top + 105, middle + 22, top + 145), "gold")
        draw.ellipse((middle - 6, top + 105, middle + 6, top + 145), "black")
    draw.polygon([(368, top + 165), (392, top + 165), (380, top + 182)], "pink")
    for shift in (-14, 0, 14):
        draw.line((340, top + 185, 230, top + 185 + shift), "black", 2)
        draw.line((420, top + 185, 530, top + 185 + shift), "black", 2)


async def read_by(model: LLM, picture: Picture, catalogue: Catalogue) -> Mapping[str, Mark]:
    """Have a model read a picture, and mark what it read."""

    async def shown() -> str:
        return as_shown(drawn(picture))

    run = Run([model], deps=Deps(models={VISION: model}))
    return marked(picture, await read_pictures([shown], run, catalogue))


async def compare(names: Sequence[str]) -> None:
    """Print the mean mark of each metric for each model."""
    async with open_bench(open_settings(), starter=True) as bench:
        for name in names:
            settings = bench.settings
            server = settings.server("vision")
            model = bench.opened(model_of(settings, name, settings.response_mode, server))
            marks = [await read_by(model, picture, bench.catalogue) for picture in pictures()]
            for metric in METRICS:
                scores = [found[metric].score for found in marks if metric in found]
                print(f"{name} {metric}: {fmean(scores):.0%} of {len(scores)}")


def main() -> None:
    """Draw the pictures, or show them to models."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pictures", description=__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--draw", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.draw:
        arguments.draw.mkdir(parents=True, exist_ok=True)
        for picture in pictures():
            (arguments.draw / f"{picture.id}.jpg").write_bytes(drawn(picture))
    asyncio.run(compare(arguments.models))


def marked(picture: Picture, read: Attachment) -> dict[str, Mark]:
    """Hold what was read against what stands there."""
    pairs = _pairs(picture.wines, read.wines)
    told = {"label": "labels", "list": "wine_list"}[picture.kind]
    mark = partial(_share, pairs, reason=", ".join(_otherwise(pairs)))
    marks = {
        "shows": Mark(1) if read.shows == told else Mark(0, f"read as {read.shows}"),
        "wines": mark(lambda wine, found: True),
        "vintages": mark(lambda wine, found: found.vintage == wine.vintage),
    }
    if read.wines:
        others = len(read.wines) - sum(found is not None for _, found in pairs)
        reason = f"{others} stand nowhere there" if others else ""
        marks["no_others"] = Mark(1 - others / len(read.wines), reason)
    if picture.kind == "list":
        marks["prices"] = mark(
            lambda wine, found: (
                (found.price, found.glass_price, found.currency)
                == (wine.price, wine.glass_price, picture.currency)
            )
        )
    if ours := [(wine, found) for wine, found in pairs if wine.known_id]:
        marks["cellar"] = _share(ours, lambda wine, found: found.known_id == wine.known_id)
    return marks


Pairs = Sequence[tuple[PictureWine, ReadWine | None]]


def _otherwise(pairs: Pairs) -> Iterator[str]:
    """Name what was read otherwise, or not at all."""
    for wine, read in pairs:
        if read is None:
            yield f"{wine.label} not read"
        elif (read.vintage, read.price) != (wine.vintage, wine.price):
            yield f"{wine.label} read as {read.label}"


def _pairs(wines: Sequence[PictureWine], read: Sequence[ReadWine]) -> Pairs:
    """Each wine that stands there with what was read of it."""
    left = list(read)
    pairs: list[tuple[PictureWine, ReadWine | None]] = []
    for wine in wines:
        named = set(words(f"{wine.producer} {wine.name}"))
        shares = [len(named & set(words(wine.label))) / len(named) for wine in left]
        best = max(range(len(left)), key=shares.__getitem__, default=None)
        is_same = best is not None and shares[best] >= SAME
        pairs.append((wine, left.pop(best) if is_same and best is not None else None))
    return pairs


def _share(pairs: Pairs, right: Callable[[PictureWine, ReadWine], bool], reason: str = "") -> Mark:
    """Return the share of wines that were read, and rightly."""
    count = sum(found is not None and right(wine, found) for wine, found in pairs)
    return Mark(1) if count == len(pairs) else Mark(count / len(pairs), reason or "not recognised")


if __name__ == "__main__":
    main()
