"""Read the pictures, files and voices that users send; none of them is stored."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import PurePath
from typing import Any, Final

from telegram import Bot, Message, Update
from telegram.error import BadRequest, Forbidden, TelegramError
from telegram.ext import MessageHandler, filters

from agent import lengths
from agent.deps import deps_of
from agent.engine.run import Run
from agent.i18n import say
from agent.retrying import retry
from agent.senses.pictures import TOO_LARGE, VISION, Pages, Unusable, read_pages, read_pictures
from agent.senses.speech import hear, read_aloud
from agent.sommelier.attachment import Attachment
from agent.sommelier.safety import person_in
from agent.turn import Reply, settings_of
from bot.telegram.conversation import (
    PICTURE,
    AnyHandler,
    Context,
    Conversation,
    Enclosed,
    question_of,
)
from bot.telegram.messages import answer_meant, is_addressed, message_of, with_context, wording
from bot.telegram.render import to_telegram_html, visible_text
from bot.telegram.settings import ALOUD, ON
from bot.updates.bursts import ALBUM, file_in, number

log = logging.getLogger(__name__)

FETCH_TRIES: Final = 3
PDF: Final = "application/pdf"
PICTURES: Final = filters.PHOTO | filters.Document.IMAGE | filters.Document.PDF
VOICES: Final = filters.VOICE | filters.AUDIO | filters.VIDEO_NOTE
File = Mapping[str, Any]
"""A file as Telegram describes it."""


class AboutPicture(filters.MessageFilter):
    """A reply to a picture that somebody sent."""

    def filter(self, message: Message) -> bool:
        """Return whether a message is one."""
        replied = message.reply_to_message
        return replied is not None and bool(replied.photo)


ABOUT_PICTURE: Final = filters.REPLY & AboutPicture() & filters.TEXT & ~filters.COMMAND


@dataclass(frozen=True, slots=True)
class Media:
    """Answers pictures, files and voices.

    `pages_of` reads a PDF file, `as_shown` makes of a picture what a model is shown.
    """

    talk: Conversation
    pages_of: Callable[[bytes], Awaitable[Pages]]
    as_shown: Callable[[bytes], Awaitable[str]]

    def handlers(self) -> list[AnyHandler]:
        """Return the handlers."""
        new = filters.UpdateType.MESSAGE
        return [
            MessageHandler(new & (PICTURES | ABOUT_PICTURE), self.pictures),
            MessageHandler(new & VOICES, self.voice),
        ]

    async def pictures(self, update: Update, context: Context) -> None:
        """Answer a photo, an album or a PDF file, or words in reply to one."""
        message, bot = message_of(update), context.bot
        if not is_addressed(message, bot):
            return
        words, run = wording(message, bot), self.talk.turns.run
        files = files_of(message) or files_of(message.reply_to_message)
        is_file = any(file.get("mime_type") == PDF for file in files)
        can_see = VISION in deps_of(run).models or (is_file and bool(run.models))
        if not (words or can_see):
            await self.talk.say(update, say("cannot_read") if is_file else say("cannot_see"))
            return
        text = with_context(words, message, bot) if words else PICTURE
        note = say("not_read") if is_file else say("not_seen")
        await self.talk.respond(
            question_of(update, bot, text, kind="label" if can_see else "chat"),
            answer_meant(message, bot),
            Enclosed(read=lambda run: self._read(files, bot, run), note=note),
        )

    async def voice(self, update: Update, context: Context) -> None:
        """Answer a voice message or a recording."""
        message, bot = message_of(update), context.bot
        transcriber = self.talk.resources.transcriber
        sound = message.voice or message.audio or message.video_note
        if sound is None or not is_addressed(message, bot):
            return
        duration = sound.duration
        seconds = duration.total_seconds() if isinstance(duration, timedelta) else float(duration)
        if transcriber is None and wording(message, bot):
            await self.talk.text(update, context)
        elif transcriber is None:
            await self.talk.say(update, say("cannot_hear"))
        elif seconds > transcriber.longest_seconds:
            most = f"{transcriber.longest_seconds:g}"
            await self.talk.say(update, say("too_long_to_hear", seconds=most))
        else:
            suffix = PurePath((message.audio and message.audio.file_name) or "").suffix.lower()
            name = f"voice{suffix or ('.ogg' if message.voice else '.mp4')}"
            download = partial(fetch, bot, sound.to_dict())
            enclosed = Enclosed(
                hear=lambda run: hear(download, name, seconds, run=run, transcriber=transcriber),
                asks=lambda words: with_context(words, message, bot),
                aloud=self._aloud,
            )
            await self.talk.respond(question_of(update, bot, "", kind="voice"), enclosed=enclosed)

    async def _aloud(self, reply: Reply, run: Run) -> bytes:
        """Return the answer as audio, for a user who chose so."""
        is_chosen = settings_of(person_in(run).facts).get(ALOUD) == ON
        speaker = self.talk.resources.speaker
        if speaker is None or not is_chosen or reply.outcome == "care":
            return b""
        return await read_aloud(visible_text(to_telegram_html(reply.text)), run, speaker)

    async def _read(self, files: Sequence[File], bot: Bot, run: Run) -> Attachment | None:
        """Return what the first PDF file says, or the pictures; None if no model can see them."""
        catalogue = self.talk.repositories.wines
        if pdf := next((file for file in files if file.get("mime_type") == PDF), None):
            try:
                pages = await self.pages_of(await fetch(bot, pdf))
            except Unusable as error:
                log.info("A file was not read: %s", error)
                return Attachment(failed=1)
            return await read_pages(pages, run, catalogue)
        if VISION not in deps_of(run).models:
            return None
        downloads = [partial(self._picture, file, bot) for file in files]
        return await read_pictures(downloads, run, catalogue)

    async def _picture(self, file: File, bot: Bot) -> str:
        return await self.as_shown(await fetch(bot, file))


def files_of(message: Message | None) -> list[File]:
    """Return the files of a message, of an album all."""
    if message is None:
        return []
    album = message.api_kwargs.get(ALBUM)
    if isinstance(album, list):
        return album
    file = file_in(message.to_dict())
    return [file] if file else []


async def fetch(bot: Bot, file: File) -> bytes:
    """Fetch a file from Telegram.

    Raises:
        Unusable: it is too large, or Telegram does not hand it out.
    """

    async def download() -> bytes:
        found = await bot.get_file(str(file.get("file_id")))
        if (found.file_size or 0) > lengths.FILE_BYTES:
            raise Unusable(TOO_LARGE)
        return bytes(await found.download_as_bytearray())

    if number(file.get("file_size")) > lengths.FILE_BYTES:
        raise Unusable(TOO_LARGE)
    try:
        return await retry(download, tries=FETCH_TRIES, on=_may_pass)
    except TelegramError as error:
        raise Unusable("not_fetched") from error


def _may_pass(error: Exception) -> bool:
    return isinstance(error, TelegramError) and not isinstance(error, BadRequest | Forbidden)
