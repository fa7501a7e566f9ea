"""Pictures for tests, drawn by Pillow, and what a scripted model is shown of them."""

import base64
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from tests.doubles.model_server import Step, answer_json
from tests.doubles.server import JsonObject

CAMERA = 0x0110


def drawn(
    lines: Sequence[str], size: tuple[int, int] = (900, 1200), camera: str = ""
) -> bytes:
    """A JPEG with these lines; `camera` is what its EXIF says."""
    picture = Image.new("RGB", size, "ivory")
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(size[0] // 25)
    draw.multiline_text((size[0] // 20, size[1] // 20), "\n".join(lines), "black", font)
    exif = Image.Exif()
    if camera:
        exif[CAMERA] = camera
    written = BytesIO()
    picture.save(written, "JPEG", exif=exif)
    return written.getvalue()


def saved(picture: Image.Image, kind: str, **options: Any) -> bytes:
    written = BytesIO()
    picture.save(written, kind, **options)
    return written.getvalue()


def shown(request: JsonObject) -> list[bytes]:
    parts = [
        part
        for message in request["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]
    urls = [part["image_url"]["url"] for part in parts]
    assert all(url.startswith("data:image/jpeg;base64,") for url in urls)
    return [base64.b64decode(url.partition(",")[2]) for url in urls]


def opened(data: bytes) -> Image.Image:
    return Image.open(BytesIO(data))


def read(shows: str, *wines: JsonObject, **fields: Any) -> Step:
    """What a model says of a picture; of a wine its line is its other parts."""
    lined = [
        {"line": " ".join(str(part) for part in wine.values()), **wine}
        for wine in wines
    ]
    return answer_json({"shows": shows, "wines": lined, **fields})
