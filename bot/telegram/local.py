"""Telegram inside this process: the Bot API as far as the handlers use it, for one private chat.

Commands and buttons are handlers of python-telegram-bot. A terminal has all of them because this
takes the network's place below the library; without it each handler would be written twice.
"""

import itertools
import json
import os
import time
from collections.abc import Mapping
from html import escape
from typing import Any, Final

from telegram.request import BaseRequest, RequestData

from agent.i18n import current_language
from agent.text import pattern
from bot.telegram.render import from_html, utf16_units, visible_text

TOKEN: Final = "0:terminal"  # noqa: S105 - no server ever sees it
BOT: Final = {"id": 0, "is_bot": True, "first_name": "Sommelier", "username": "sommelier_bot"}
COMMAND: Final = pattern(r"(/\w{1,32})(?:\s|\Z)")
READ_BY_HANDLERS: Final = ("blockquote", "pre")
"""The marks of a message that buttons below it read."""

JsonObject = dict[str, Any]


class LocalTelegram(BaseRequest):
    """Answers requests to the Bot API, and stores what the bot sends until it is taken.

    The chat's id is above every id of Telegram's (52 bits), so that a conversation here never
    mixes with one there.
    """

    read_timeout = None

    def __init__(self) -> None:
        self.chat_id = (1 << 52) + os.getpid()
        self.draft = ""
        """The HTML of the answer that forms; empty when a message has been sent."""
        # Turns are stored under these ids: no two conversations may share one.
        self._ids = itertools.count(time.time_ns() // 1_000)
        self._sent: dict[int, str] = {}
        self._messages: dict[int, JsonObject] = {}

    async def initialize(self) -> None:
        """Do nothing: there is no connection."""

    async def shutdown(self) -> None:
        """Do nothing: there is no connection."""

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *_: Any, **__: Any
    ) -> tuple[int, bytes]:
        """Answer a request; methods that change nothing here return true."""
        params: JsonObject = dict(request_data.parameters) if request_data else {}
        result: object = True
        match url.rpartition("/")[2]:
            case "getMe":
                result = BOT
            case "sendMessage" | "editMessageText" | "editMessageReplyMarkup":
                result = self._show(params)
            case "sendMessageDraft":
                self.draft = params["text"]
            case "sendDocument" if request_data:
                result = self._show(params | {"text": file_text(request_data.multipart_data or {})})
            case "answerCallbackQuery" if "text" in params:
                self._show({"text": f"<i>{escape(params['text'], quote=False)}</i>"})
        return 200, json.dumps({"ok": True, "result": result}).encode()

    def _show(self, params: JsonObject) -> JsonObject:
        """Store a message that is sent or edited, with its buttons in place of those it had."""
        number, html = params.get("message_id") or next(self._ids), params.get("text")
        message = self._messages.get(number) or self._message(number) | {"from": BOT}
        if html is not None:
            self.draft, self._sent[number] = "", html
            message |= {"text": visible_text(html), "entities": entities(html)}
        markup = params.get("reply_markup") or {}
        message["reply_markup"] = {"inline_keyboard": markup.get("inline_keyboard", [])}
        self._messages[number] = message
        return message

    def _message(self, message_id: int, text: str = "") -> JsonObject:
        chat = {"id": self.chat_id, "type": "private"}
        return {"message_id": message_id, "date": int(time.time()), "chat": chat, "text": text}

    def take(self) -> list[str]:
        """Return the HTML of the messages sent since the last call, oldest first."""
        taken = list(self._sent.values())
        self._sent.clear()
        return taken

    @property
    def buttons(self) -> dict[str, tuple[JsonObject, JsonObject]]:
        """Return the message and the button of each number that can be typed."""
        shown = [
            (message, button)
            for message in self._messages.values()
            for row in message["reply_markup"]["inline_keyboard"]
            for button in row
        ]
        return {str(number): pressed for number, pressed in enumerate(shown, 1)}

    def update_of(self, line: str) -> JsonObject:
        """Return the update of a line that the user typed; a button's number presses the button."""
        user = {"id": self.chat_id, "is_bot": False, "first_name": ""}
        user["language_code"] = current_language()
        number, pressed = next(self._ids), self.buttons.get(line)
        self._messages.clear()
        if pressed is not None:
            message, button = pressed
            self._messages[message["message_id"]] = message
            query = {"id": str(number), "chat_instance": "terminal", "from": user}
            query |= {"message": message, "data": button["callback_data"]}
            return {"update_id": number, "callback_query": query}
        message = self._message(number, line) | {"from": user}
        if command := COMMAND.match(line):
            length = command.end(1)
            message["entities"] = [{"type": "bot_command", "offset": 0, "length": length}]
        return {"update_id": number, "message": message}


def entities(html: str) -> list[JsonObject]:
    """Return the entities of a message that its buttons read."""
    found, offset = list[JsonObject](), 0
    for piece in from_html(html):
        length = utf16_units(piece.text)
        tags = [mark.tag for mark in piece.marks if mark.tag in READ_BY_HANDLERS]
        found += [{"type": tag, "offset": offset, "length": length} for tag in tags]
        offset += length
    return found


def file_text(files: Mapping[str, Any]) -> str:
    """Return the HTML that shows the text of a document."""
    name, content, *_ = files["document"]
    text = escape(content.decode(errors="replace").rstrip(), quote=False)
    return f"<b>{escape(name, quote=False)}</b>\n<pre>{text}</pre>"
