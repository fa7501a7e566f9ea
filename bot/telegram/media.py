"""Answer pictures, PDF files and voice messages of users. None of these files is stored."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from telegram import Bot, Message, Update
from telegram.error import BadRequest, Forbidden, TelegramError
from telegram.ext import filters

from agent import size_limits
from agent.engine.run import Run
from agent.files import FileReader
from agent.i18n import translate
from agent.markdown import escape
from agent.senses.pictures import VISION, read_pictures
from agent.senses.sent_files import (
    TOO_LARGE,
    UnusableFile,
    read_sent_file,
    render_pages,
    to_data_url,
)
from agent.senses.speech import (
    MAX_SECONDS,
    AudioServer,
    Transcript,
    read_aloud,
    transcribe_voice,
)
from agent.servers import retry
from agent.sommelier.attachment import Attachment
from agent.sommelier.filters import get_safety_state
from agent.sommelier.queries import Catalogue
from agent.text import in_thread_if_long
from agent.turn import (
    Reply,
    StoredMessage,
    get_chosen_settings,
    get_deps,
    get_person,
)
from bot.telegram.chat import AnyHandler, ChatTurn, ask_agent, load_history, on_message
from bot.telegram.messages import (
    id_of_replied_answer,
    is_addressed,
    message_of,
    text_without_mentions,
    with_quotations,
)
from bot.telegram.render import parse
from bot.telegram.settings import ALOUD, ON
from bot.turn import TurnKind
from bot.updates.joining import ALBUM, file_in

log = logging.getLogger(__name__)

MAX_FETCH_TRIES: Final = 3
NO_CAPTION: Final = "[picture]"
"""What is stored as the message of a user who sends a picture without a caption."""
MAX_LEAD_CHARS: Final = 300
"""The number of characters of a transcription that are shown above the answer."""
PDF: Final = "application/pdf"
PICTURES: Final = filters.PHOTO | filters.Document.IMAGE | filters.Document.PDF
"""Photos, and files that are answered like photos."""
File = Mapping[str, Any]
"""A file in the JSON of Telegram's Bot API, such as a `PhotoSize` or a `Document`."""


class RepliesToPhoto(filters.MessageFilter):
    """A filter for replies to photos."""

    def filter(self, message: Message) -> bool:
        """Return whether a message replies to a photo."""
        replied = message.reply_to_message
        return replied is not None and bool(replied.photo)


REPLY_TO_PHOTO: Final = (
    filters.REPLY & RepliesToPhoto() & filters.TEXT & ~filters.COMMAND
)


def media_handlers() -> list[AnyHandler]:
    """Return the handlers of pictures, PDF files and voice messages."""
    new = filters.UpdateType.MESSAGE
    return [
        on_message(new & (PICTURES | REPLY_TO_PHOTO), _answer_pictures),
        on_message(new & filters.VOICE, _answer_voice),
    ]


async def _answer_pictures(update: Update, turn: ChatTurn) -> None:
    """Answer a photo, an album, a PDF file, or a text that replies to a photo."""
    message = message_of(update)
    if not is_addressed(message):
        return
    text = text_without_mentions(message)
    if text:
        text = with_quotations(text, message)
    kind: TurnKind = "label"
    if VISION not in get_deps(turn.services.runner.base_run).models:
        # Without a model for pictures, only the text can be answered.
        kind = "chat"
        if not text:
            turn.reply(translate("text_only"))
            return
    files = _files_in(message) or _files_in(message.reply_to_message)
    history = await load_history(turn, id_of_replied_answer(message))
    answer = _PictureAnswer(turn, message, text, files, history)
    question = turn.make_question(text or NO_CAPTION, kind=kind)
    await turn.services.runner.run(turn, question, answer.make_reply)


@dataclass(frozen=True, slots=True)
class _PictureAnswer:
    """The answer to a message with pictures or a PDF file."""

    turn: ChatTurn
    message: Message
    text: str
    """The caption of the pictures, or the text that replies to a photo. It may be empty."""
    files: Sequence[File]
    history: Sequence[StoredMessage]

    async def make_reply(self, run: Run) -> Reply:
        """Read the files, and answer the text about them."""
        safety = get_safety_state(run)
        if safety.forbids_alcohol:
            notice = self.turn.services.runner.safety.help.write_notice(safety)
            return Reply(text=notice, outcome="help")
        # There may be no model for pictures, or it may not be asked because a budget is used up.
        if VISION not in get_deps(run).models:
            reply = await ask_agent(self.turn, self.text, run, self.history)
            return replace(reply, notes=(*reply.notes, translate("not_read")))
        reader = self.turn.services.resources.files
        downloads = _FileDownloads(self.message.get_bot(), reader, self.turn.user_id)
        catalogue = self.turn.repositories.wines
        attachment = await _read_files(self.files, downloads, run, catalogue)
        reply = await ask_agent(self.turn, self.text, run, self.history, attachment)
        return replace(reply, attachment=attachment.model_dump_json())


@dataclass(frozen=True, slots=True)
class _FileDownloads:
    """Downloads the files of a user's message, and reads them in another process."""

    bot: Bot
    reader: FileReader
    user_id: int

    async def read_picture(self, file: File) -> str:
        """Return a picture as a data URL."""
        # A photo has a width and no type. A document may lack a type, too, but has no width.
        is_photo = "mime_type" not in file and "width" in file
        download = partial(fetch_file, self.bot, file)
        return await read_sent_file(
            self.reader, download, to_data_url, user_id=self.user_id, is_photo=is_photo
        )

    async def read_pages(self, pdf: File) -> tuple[list[str], int]:
        """Return the first pages of a PDF file as data URLs, and the number of further pages."""
        download = partial(fetch_file, self.bot, pdf)
        return await read_sent_file(
            self.reader, download, render_pages, user_id=self.user_id
        )


async def _read_files(
    files: Sequence[File],
    downloads: _FileDownloads,
    run: Run,
    catalogue: Catalogue,
) -> Attachment:
    """Return the content of the first PDF file. If there is none, return that of the pictures."""
    pdfs = [file for file in files if file.get("mime_type") == PDF]
    if not pdfs:
        pictures = [partial(downloads.read_picture, file) for file in files]
        return await read_pictures(pictures, run, catalogue)
    try:
        pages, omitted_count = await downloads.read_pages(pdfs[0])
    except UnusableFile as error:
        log.info("A file was not read: %s", error)
        return Attachment(unread={"pictures_unread": 1})

    # Pictures are given as functions that download them. The pages are here already.
    async def get_page(page: str) -> str:
        return page

    page_downloads = [partial(get_page, page) for page in pages]
    return await read_pictures(page_downloads, run, catalogue, left_out=omitted_count)


async def _answer_voice(update: Update, turn: ChatTurn) -> None:
    """Answer a voice message. Show its transcription above the answer, and above the drafts."""
    message = message_of(update)
    if message.voice is None or not is_addressed(message):
        return
    voice = message.voice.to_dict()
    transcriber = turn.services.resources.transcriber
    if transcriber is None:
        turn.reply(translate("text_only"))
        return
    if voice["duration"] > MAX_SECONDS:
        turn.reply(translate("too_long_to_hear", seconds=MAX_SECONDS))
        return
    history = await load_history(turn, id_of_replied_answer(message))
    answer = _VoiceAnswer(turn, message, voice, transcriber, history)
    question = turn.make_question("", kind="voice", transcribe=answer.transcribe)
    await turn.services.runner.run(turn, question, answer.make_reply)


@dataclass(slots=True)
class _VoiceAnswer:
    """The answer to a voice message. The runner calls `transcribe`, and then `make_reply`."""

    turn: ChatTurn
    message: Message
    voice: File
    transcriber: AudioServer
    history: Sequence[StoredMessage]
    transcript: Transcript = field(default_factory=Transcript)
    """The result of `transcribe`."""

    async def transcribe(self, run: Run) -> str:
        """Return what was said, or "" if it was not understood. Show it above the draft."""
        download = partial(fetch_file, self.message.get_bot(), self.voice)
        duration = self.voice["duration"]
        self.transcript = await transcribe_voice(
            download, duration, run=run, server=self.transcriber
        )
        if not self.transcript.text:
            return ""
        if run.draft is not None:
            run.draft.show(_format_lead(self.transcript.text))
        return with_quotations(self.transcript.text, self.message)

    async def make_reply(self, run: Run) -> Reply:
        """Answer what was said, and read the answer aloud if the user wants that."""
        if self.transcript.error_type:
            errors = (f"voice_{self.transcript.error_type}",)
            return Reply(
                text=translate("not_heard"), outcome="fallback", error_types=errors
            )
        text = with_quotations(self.transcript.text, self.message)
        reply = await ask_agent(self.turn, text, run, self.history)
        speaker = self.turn.services.resources.speaker
        audio = await _read_reply_aloud(speaker, reply, run)
        return replace(reply, lead=_format_lead(self.transcript.text), audio=audio)


async def _read_reply_aloud(
    speaker: AudioServer | None, reply: Reply, run: Run
) -> bytes:
    """Return a reply as audio, or b"" if the user has not asked for it in the settings."""
    settings = get_chosen_settings(get_person(run).facts)
    is_wanted = settings.get(ALOUD) == ON
    if speaker is None or not is_wanted or reply.outcome == "help":
        return b""
    spoken = await in_thread_if_long(len(reply.text), parse, reply.text)
    return await read_aloud(spoken.text, run, speaker)


def _files_in(message: Message | None) -> list[File]:
    """Return the file of a message, or all files of its album."""
    if message is None:
        return []
    album = message.api_kwargs.get(ALBUM)
    if isinstance(album, list):
        return album
    file = file_in(message.to_dict())
    if not file:
        return []
    return [file]


def _format_lead(transcription: str) -> str:
    """Return the line above an answer that shows a transcription, or "" if nothing was said."""
    line = " ".join(transcription.split())
    if not line:
        return ""
    heard = translate("heard", words=escape(line[:MAX_LEAD_CHARS]))
    return f"_{heard}_"


async def fetch_file(
    bot: Bot, file: File, max_bytes: int = size_limits.FILE_BYTES
) -> bytes:
    """Return the content of a file that Telegram stores.

    Raises:
        UnusableFile: the file is too large, or cannot be downloaded.
    """

    async def download() -> bytes:
        file_id = str(file.get("file_id"))
        remote_file = await bot.get_file(file_id)
        if (remote_file.file_size or 0) > max_bytes:
            raise UnusableFile(TOO_LARGE)
        content = await remote_file.download_as_bytearray()
        # Telegram does not always give the size before the download.
        if len(content) > max_bytes:
            raise UnusableFile(TOO_LARGE)
        return bytes(content)

    def is_transient(error: Exception) -> bool:
        if isinstance(error, BadRequest | Forbidden):
            return False
        return isinstance(error, TelegramError)

    try:
        return await retry(
            download, max_tries=MAX_FETCH_TRIES, should_retry=is_transient
        )
    except TelegramError as error:
        raise UnusableFile("not_fetched") from error
