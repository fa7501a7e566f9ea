"""Draw the pictures of the conversations that `real_model` plays."""

import unicodedata
from collections.abc import Sequence
from io import BytesIO

from PIL import Image, ImageDraw, ImageFilter, ImageFont


def sketched(rows: Sequence[str]) -> bytes:
    """Draw rows of text as a JPEG; a row after `~` is blurred, the row `cat` is a cat."""
    sheet = Image.new(
        "RGB", (760, 60 + 60 * len(rows) + 240 * ("cat" in rows)), "ivory"
    )
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


def _draw_cat(draw: ImageDraw.ImageDraw, top: int) -> None:
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


def plain(text: str) -> str:
    """Leave out accents: the letters that come with Pillow have none, nor signs of currencies."""
    apart = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in apart if not unicodedata.combining(sign))
