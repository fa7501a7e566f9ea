"""Answer the pictures, files and voices that users send; none of them is stored."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from telegram import Bot, Message, Update
from telegram.error import BadRequest, Forbidden, TelegramError
from telegram.ext import filters

from agent import size_limits
from agent.engine.run import Run
from agent.i18n import translate
from agent.markdown import escape
from agent.retrying import retry
from agent.senses.pictures import VISION, read_pictures
from agent.senses.sent_files import TOO_LARGE, SentFiles, Unusable
from agent.senses.speech import MAX_SECONDS, AudioServer, Heard, hear, read_aloud
from agent.sommelier.attachment import Attachment
from agent.sommelier.safety import get_person, get_safety_state
from agent.sommelier.wine import Catalogue
from agent.turn import Reply, get_chosen_settings, get_deps
from bot.telegram.conversation import AnyHandler, Conversation, on_message
from bot.telegram.messages import (
    id_of_replied_answer,
    is_addressed,
    message_of,
    text_without_mentions,
    with_quotations,
)
from bot.telegram.render import parse
from bot.telegram.settings import ALOUD, ON
from bot.updates.bursts import ALBUM, file_in

log = logging.getLogger(__name__)

FETCH_TRIES: Final = 3
PICTURE: Final = "[picture]"
"""Stored as the text of a picture without a caption."""
MAX_LEAD_CHARS: Final = 300
"""The longest transcription shown above an answer."""
PDF: Final = "application/pdf"
PICTURES: Final = filters.PHOTO | filters.Document.IMAGE | filters.Document.PDF
File = Mapping[str, Any]
"""A file as Telegram describes it."""


class AboutPicture(filters.MessageFilter):
    """A reply to a picture that somebody sent."""

    def filter(self, message: Message) -> bool:
        """Return whether a message is one."""
        replied = message.reply_to_message
        return replied is not None and bool(replied.photo)


ABOUT_PICTURE: Final = filters.REPLY & AboutPicture() & filters.TEXT & ~filters.COMMAND


def media_handlers() -> list[AnyHandler]:
    """Return the handlers of pictures, files and voices."""
    new = filters.UpdateType.MESSAGE
    return [
        on_message(new & (PICTURES | ABOUT_PICTURE), partial(_answer_pictures, SentFiles())),
        on_message(new & filters.VOICE, _answer_voice),
    ]


async def _answer_pictures(readers: SentFiles, update: Update, conversation: Conversation) -> None:
    """Answer a photo, an album or a PDF file, or words in reply to one."""
    message = message_of(update)
    if not is_addressed(message):
        return
    words = text_without_mentions(message)
    can_see = VISION in get_deps(conversation.turns.base_run).models
    files = files_of(message) or files_of(message.reply_to_message)
    if not (words or can_see):
        await conversation.reply(update, translate("text_only"))
        return
    text = with_quotations(words, message) if words else ""
    kind = "label" if can_see else "chat"
    question = conversation.build_question(update, text or PICTURE, kind=kind)
    history = await conversation.load_history(question, id_of_replied_answer(message))

    async def work(run: Run) -> Reply:
        if (safety := get_safety_state(run)).forbids_alcohol:
            return Reply(text=conversation.turns.safety.help.notice_for(safety), outcome="care")
        if VISION not in get_deps(run).models:
            reply = await conversation.ask_agent(text, run, history)
            return replace(reply, notes=(*reply.notes, translate("not_read")))
        bot, catalogue = message.get_bot(), conversation.repositories.wines
        read = await _read(files, readers, bot, run, catalogue)
        reply = await conversation.ask_agent(text, run, history, read)
        return replace(reply, attachment=read.model_dump_json())

    await conversation.turns.run_turn(question, work)


async def _read(
    files: Sequence[File], readers: SentFiles, bot: Bot, run: Run, catalogue: Catalogue
) -> Attachment:
    """Return what the first PDF file says, or else the pictures."""

    async def picture(file: File) -> str:
        is_photo = "mime_type" not in file
        return await readers.picture(await fetch(bot, file), is_photo=is_photo)

    async def page_of(page: str) -> str:
        return page

    pdf = next((file for file in files if file.get("mime_type") == PDF), None)
    if pdf is None:
        return await read_pictures([partial(picture, file) for file in files], run, catalogue)
    try:
        pages, more = await readers.pages(await fetch(bot, pdf))
    except Unusable as error:
        log.info("A file was not read: %s", error)
        return Attachment(unread={"pictures_unread": 1})
    drawn = [partial(page_of, page) for page in pages]
    return await read_pictures(drawn, run, catalogue, left_out=more)


async def _answer_voice(update: Update, conversation: Conversation) -> None:
    """Answer a voice message; show its transcription while it is answered."""
    message, server = message_of(update), conversation.resources.transcriber
    if message.voice is None or not is_addressed(message):
        return
    heard, sound = Heard(), message.voice.to_dict()
    if server is None or sound["duration"] > MAX_SECONDS:
        problem = "too_long_to_hear" if server else "text_only"
        await conversation.reply(update, translate(problem, seconds=str(MAX_SECONDS)))
        return
    question = conversation.build_question(update, "", kind="voice")
    history = await conversation.load_history(question, id_of_replied_answer(message))
    download = partial(fetch, message.get_bot(), sound)

    async def listen(run: Run) -> str:
        nonlocal heard
        heard = await hear(download, sound["duration"], run=run, server=server)
        if heard.text and run.show_draft is not None:
            run.show_draft(lambda: lead_of(heard.text))
        return with_quotations(heard.text, message) if heard.text else ""

    async def work(run: Run) -> Reply:
        if heard.why:
            errors = (f"voice_{heard.why}",)
            return Reply(text=translate("not_heard"), outcome="fallback", error_types=errors)
        reply = await conversation.ask_agent(with_quotations(heard.text, message), run, history)
        audio = await _aloud(conversation.resources.speaker, reply, run)
        return replace(reply, lead=lead_of(heard.text), audio=audio)

    await conversation.turns.run_turn(replace(question, transcribe=listen), work)


async def _aloud(speaker: AudioServer | None, reply: Reply, run: Run) -> bytes:
    """Return the answer as audio, for a user who chose so."""
    is_chosen = get_chosen_settings(get_person(run).facts).get(ALOUD) == ON
    if speaker is None or not is_chosen or reply.outcome == "care":
        return b""
    return await read_aloud(parse(reply.text).text, run, speaker)


def files_of(message: Message | None) -> list[File]:
    """Return the files of a message, of an album all."""
    if message is None:
        return []
    album = message.api_kwargs.get(ALBUM)
    return album if isinstance(album, list) else [*filter(None, [file_in(message.to_dict())])]


def lead_of(transcription: str) -> str:
    """Return the line above an answer that shows a transcription; empty without one."""
    words = escape(" ".join(transcription.split())[:MAX_LEAD_CHARS])
    return f"_{translate('heard', words=words)}_" if words else ""


async def fetch(bot: Bot, file: File) -> bytes:
    """Fetch a file from Telegram.

    Raises:
        Unusable: it is too large, or Telegram does not hand it out.
    """

    async def download() -> bytes:
        found = await bot.get_file(str(file.get("file_id")))
        if (found.file_size or 0) > size_limits.FILE_BYTES:
            raise Unusable(TOO_LARGE)
        return bytes(await found.download_as_bytearray())

    def may_pass(error: Exception) -> bool:
        return isinstance(error, TelegramError) and not isinstance(error, BadRequest | Forbidden)

    try:
        return await retry(download, max_tries=FETCH_TRIES, should_retry=may_pass)
    except TelegramError as error:
        raise Unusable("not_fetched") from error
