"""Whether a model sees, and a server hears: one small picture, one second of a tone."""

import asyncio
import math
import wave
from array import array
from io import BytesIO
from typing import Final

from agent.engine.messages import LLM
from agent.engine.run import Run
from agent.senses.pictures import QUESTION, as_url, transcribed
from agent.senses.speech import Transcriber
from agent.text import words

LABEL: Final = ("Quarterstone", "Riesling", "1987")
"""What stands on the label that is shown; no wine is called so."""
RATE: Final = 16_000
PITCH: Final = 440
LONGEST: Final = 60


def label() -> str:
    """Draw the label, as a data URL; blocks for some 30 ms."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - 30 ms, only for pictures

    picture = Image.new("RGB", (480, 320), "ivory")
    font = ImageFont.load_default(48)
    ImageDraw.Draw(picture).multiline_text((60, 50), "\n".join(LABEL), "black", font)
    return as_url(picture)


def tone() -> bytes:
    """Make a second of a tone, as a WAV file."""
    turn = 2 * math.pi * PITCH / RATE
    samples = array("h", (int(8000 * math.sin(turn * at)) for at in range(RATE)))
    written = BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(samples.tobytes())
    return written.getvalue()


async def misread(model: LLM) -> str:
    """Tell what a model makes of a label that it is shown; empty if it reads it. A request or two.

    Where it gives no answer that is how the asking ended.
    """
    image = await asyncio.to_thread(label)
    reading = await transcribed(Run(), models=[model], question=QUESTION, images=[image])
    if reading.why:
        return reading.why
    said = " ".join(each.line for each in reading.wines)
    is_read = {LABEL[0].lower(), LABEL[2]} <= {*words(said)}
    return "" if is_read else f"it read {said[:LONGEST]!r}"


async def hears(transcriber: Transcriber) -> None:
    """Have a second of a tone written down, whatever that comes to.

    Raises:
        ModelError: the server writes nothing down.
    """
    await transcriber.transcribe(tone(), "tone.wav")
