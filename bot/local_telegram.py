"""Telegram inside this process: the Bot API as far as the handlers use it, and one person's chat.

The real `Application` and its handlers run on it unchanged, so what works here works in Telegram.
"""

import itertools
import json
import os
import re
import time
from collections.abc import Callable
from html import escape
from typing import Any, Final

from telegram import Bot, Update
from telegram.request import BaseRequest, RequestData

from bot.render import from_html, utf16_units, visible_text

TOKEN: Final = "0:terminal"  # noqa: S105 - no server ever sees it
BOT: Final = {"id": 0, "is_bot": True, "first_name": "Sommelier", "username": "sommelier_bot"}
COMMAND: Final = re.compile(r"/\w{1,32}(?!\S)")

JsonObject = dict[str, Any]


class LocalTelegram(BaseRequest):
    """Answers Bot API requests and keeps what the bot sends until it is taken.

    The chat's id lies above every id that Telegram gives (52 bits), so that a conversation here
    never mixes with one there.
    """

    def __init__(self) -> None:
        self.chat_id = (1 << 52) + os.getpid()
        # Ids go on where the last conversation's ended: what is kept of turns is kept under them.
        self._ids = itertools.count(time.time_ns() // 1_000_000)
        self._sent: dict[int, str] = {}
        self._choices: dict[str, tuple[JsonObject, str]] = {}
        self._methods: dict[str, Callable[[JsonObject], object]] = {
            "getMe": lambda _: BOT,
            "sendMessage": self._send_message,
            "sendDocument": self._send_document,
            "editMessageText": self._edit_message_text,
            "deleteMessage": self._delete_message,
        }

    @property
    def read_timeout(self) -> float | None:
        """None: nothing here takes time."""
        return None

    async def initialize(self) -> None:
        """Nothing is needed."""

    async def shutdown(self) -> None:
        """Nothing is held."""

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        *_: object,
        **__: object,
    ) -> tuple[int, bytes]:
        """Do what a Bot API request asks; methods that change nothing here return true."""
        name = url.rpartition("/")[2]
        params = dict(request_data.parameters) if request_data else {}
        if request_data and request_data.contains_files:
            params["files"] = list(request_data.multipart_data.values())
        result = self._methods[name](params) if name in self._methods else True
        return 200, json.dumps({"ok": True, "result": result}).encode()

    def take(self) -> list[str]:
        """The HTML of the messages sent since the last call, oldest first."""
        taken = list(self._sent.values())
        self._sent.clear()
        return taken

    def typed(self, line: str, bot: Bot) -> Update:
        """The update of a line that the person typed.

        The number of a button under the last answer presses it.
        """
        person = {"id": self.chat_id, "is_bot": False, "first_name": "You"}
        choice = self._choices.get(line.strip())
        self._choices.clear()
        if choice is not None:
            return self._pressed(*choice, person, bot)
        message = self._message(next(self._ids), line)
        message["from"] = person
        if command := COMMAND.match(line):
            entity = {"type": "bot_command", "offset": 0, "length": command.end()}
            message["entities"] = [entity]
        return Update.de_json({"update_id": message["message_id"], "message": message}, bot)

    def _pressed(self, message: JsonObject, data: str, person: JsonObject, bot: Bot) -> Update:
        number = next(self._ids)
        query = {"id": str(number), "from": person, "chat_instance": "terminal", "data": data}
        update = {"update_id": number, "callback_query": query | {"message": message}}
        return Update.de_json(update, bot)

    def _message(self, message_id: int, text: str) -> JsonObject:
        chat = {"id": self.chat_id, "type": "private", "first_name": "You"}
        return {"message_id": message_id, "date": int(time.time()), "chat": chat, "text": text}

    def _send_message(self, params: JsonObject) -> JsonObject:
        html = params["text"]
        message = self._message(next(self._ids), visible_text(html)) | {"entities": entities(html)}
        self._sent[message["message_id"]] = html + self._offered(message, params)
        return message

    def _offered(self, message: JsonObject, params: JsonObject) -> str:
        """The buttons of a message as numbered choices, one a line."""
        rows = params.get("reply_markup", {}).get("inline_keyboard", [])
        lines = []
        for button in itertools.chain.from_iterable(rows):
            number = str(len(self._choices) + 1)
            self._choices[number] = message, button["callback_data"]
            lines.append(f"\n<b>{number}</b> › {escape(button['text'], quote=False)}")
        return "\n" + "".join(lines) if lines else ""

    def _send_document(self, params: JsonObject) -> JsonObject:
        """A file is shown, as far as it is text."""
        name, content, *_ = params["files"][0]
        shown = escape(content.decode(errors="replace").rstrip(), quote=False)
        message_id = next(self._ids)
        self._sent[message_id] = f"<b>{escape(name, quote=False)}</b>\n<pre>{shown}</pre>"
        return self._message(message_id, name)

    def _edit_message_text(self, params: JsonObject) -> JsonObject:
        self._sent[params["message_id"]] = params["text"]
        return self._message(params["message_id"], params["text"])

    def _delete_message(self, params: JsonObject) -> bool:
        return self._sent.pop(params["message_id"], None) is not None


ENTITIES: Final = {"a": "text_link", "b": "bold", "i": "italic", "code": "code", "pre": "pre"}


def entities(html: str) -> list[JsonObject]:
    """What Telegram makes of a message's marks."""
    found, offset = [], 0
    for run in from_html(html):
        length = utf16_units(run.text)
        for mark in run.marks:
            quote = "expandable_blockquote" if mark.value else "blockquote"
            entity = {"type": ENTITIES.get(mark.tag, quote), "offset": offset, "length": length}
            found.append(entity | ({"url": mark.value} if mark.tag == "a" else {}))
        offset += length
    return found
