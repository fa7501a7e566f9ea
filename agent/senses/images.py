"""Pictures as a model is shown them: upright, small, without what a camera wrote into them.

A picture is read in a thread. What it claims to be is looked at before any of it is unpacked.
"""

import base64
from io import BytesIO
from typing import TYPE_CHECKING, Final

from agent import lengths

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

LONGEST_SIDE: Final = 1568
"""Pixels of the longer side; what is larger, models scale down themselves, at the same price."""
QUALITIES: Final = (85, 60, 40)
"""Of a JPEG, the first that is small enough."""
FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "TIFF", "BMP", "MPO")

TOO_LARGE: Final = "too_large"
NO_PICTURE: Final = "no_picture"


class Unusable(ValueError):
    """A picture, a recording or a file that is not looked into; the text is the name of why."""


def as_shown(data: bytes) -> str:
    """Return a picture as a data URL: a JPEG of 1,568 pixels at most, nothing of its metadata.

    Blocks: call it in a thread.

    Raises:
        Unusable: it is too large, or no picture.
    """
    from PIL import Image  # noqa: PLC0415 - 30 ms, only for pictures

    if len(data) > lengths.FILE_BYTES:
        raise Unusable(TOO_LARGE)
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as picture:
            if picture.width * picture.height <= lengths.IMAGE_PIXELS:
                return as_url(picture)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        pass
    except Exception:  # the readers of formats raise anything at all over a file made for it
        raise Unusable(NO_PICTURE) from None
    raise Unusable(TOO_LARGE)


def as_url(picture: "Picture") -> str:
    """Return an open picture as a data URL, see `as_shown`."""
    from PIL import Image, ImageOps  # noqa: PLC0415 - see as_shown

    picture.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))
    picture.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    upright = ImageOps.exif_transpose(picture).convert("RGBA")
    # A new one: nothing of what the old holds beside its pixels goes along.
    flat = Image.new("RGB", upright.size, "white")
    flat.paste(upright, mask=upright.getchannel("A"))
    for quality in QUALITIES:
        written = BytesIO()
        flat.save(written, "JPEG", quality=quality)
        if written.tell() <= lengths.SHOWN_IMAGE_BYTES:
            break
    return f"data:image/jpeg;base64,{base64.b64encode(written.getvalue()).decode()}"
