"""Convert pictures and PDF files from users to pictures for a model.

`agent.files` runs these functions in a process with limits.
"""

import base64
from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import TYPE_CHECKING, Final, TypeVar

from agent import size_limits
from agent.files import FileReader, TooCostly, Unreadable

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

R = TypeVar("R")

MAX_SIDE_PIXELS: Final = 1568
"""The maximum length of the longer side. Models scale larger pictures down anyway."""
MAX_PAGE_SCALE: Final = 4
"""The most pixels for a point (1/72 inch) of a page. A tiny page is not enlarged further."""
FORMATS: Final = ("JPEG", "PNG", "WEBP")
TOO_LARGE: Final = "too_large"
UNREADABLE: Final = "no_picture"


class UnusableFile(Unreadable):
    """A picture, recording or file that cannot be used. The message is an error type."""


async def read_sent_file(
    files: FileReader,
    download: Callable[[], Awaitable[bytes]],
    convert: Callable[[bytes], R],
    *,
    user_id: int,
    is_photo: bool = False,
) -> R:
    """Download a file of a user, convert it in another process, and return the result.

    Raises:
        UnusableFile: the file cannot be downloaded, is too large, or cannot be read by `convert`.
    """
    try:
        return await files.read(download, convert, user_id=user_id, is_photo=is_photo)
    except UnusableFile:
        # The download has failed, in this process.
        raise
    except TooCostly:
        raise UnusableFile(TOO_LARGE) from None
    except Unreadable as error:
        # An UnusableFile of the other process arrives as an Unreadable with the same text.
        if str(error) == TOO_LARGE:
            raise UnusableFile(TOO_LARGE) from None
        raise UnusableFile(UNREADABLE) from None


def render_pages(data: bytes) -> tuple[list[str], int]:
    """Return the first pages of a PDF file as data URLs, and the number of further pages."""
    return render_pages_from(data, "0")


def render_pages_from(data: bytes, first: str) -> tuple[list[str], int]:
    """Return pages of a PDF file as data URLs, and the number of further pages.

    `first` is the number of the first page to return. The number is a text, because the other
    process gets only texts beside the file. "0" is the first page of the file.
    """
    from pypdfium2 import PdfDocument  # noqa: PLC0415 - slow to import

    document = PdfDocument(data)
    start = int(first)
    end = min(len(document), start + size_limits.IMAGES)
    pages = []
    for number in range(start, end):
        page = document[number]
        longer_side = max(*page.get_size(), 1)
        scale = min(MAX_SIDE_PIXELS / longer_side, MAX_PAGE_SCALE)
        bitmap = page.render(scale=scale)
        pages.append(_encode(bitmap.to_pil()))
        bitmap.close()
        page.close()
    return pages, len(document) - end


def to_data_url(data: bytes) -> str:
    """Return a picture as the data URL of an upright JPEG without metadata.

    The longer side of the picture has at most `MAX_SIDE_PIXELS`.

    Raises:
        UnusableFile: the data are too large, or not a picture.
    """
    from PIL import Image  # noqa: PLC0415 - 30 ms, only for pictures

    try:
        with Image.open(BytesIO(data), formats=FORMATS) as picture:
            pixels = picture.width * picture.height
            if pixels <= size_limits.IMAGE_PIXELS:
                return _encode(picture)
    except MemoryError:
        raise  # the process that runs this tells it from an unreadable file
    except Exception:  # decoders raise errors of any type for malicious files
        raise UnusableFile(UNREADABLE) from None
    raise UnusableFile(TOO_LARGE)


def _encode(picture: "Picture") -> str:
    """Return a picture as the data URL of a JPEG."""
    from PIL import Image, ImageOps  # noqa: PLC0415 - see to_data_url

    picture.thumbnail((MAX_SIDE_PIXELS, MAX_SIDE_PIXELS))
    upright = ImageOps.exif_transpose(picture).convert("RGBA")
    # Copy the pixels to a new picture, without metadata.
    opaque = Image.new("RGB", upright.size, "white")
    opaque.paste(upright, mask=upright.getchannel("A"))
    jpeg = BytesIO()
    opaque.save(jpeg, "JPEG", quality=85)
    encoded = base64.b64encode(jpeg.getvalue())
    return f"data:image/jpeg;base64,{encoded.decode()}"
