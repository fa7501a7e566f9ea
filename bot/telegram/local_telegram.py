"""Telegram inside this process: the Bot API as far as the handlers use it, and one person's chat.

The real `Application` and its handlers run on it unchanged, so what works here works in Telegram.
"""

import itertools
import json
import os
import time
from collections.abc import Callable
from html import escape
from typing import Any, Final

from telegram import Bot, Update
from telegram.request import BaseRequest, RequestData

from agent.i18n import spoken
from agent.text import pattern
from bot.telegram.follow_ups import KIND
from bot.telegram.render import from_html, utf16_units, visible_text

TOKEN: Final = "0:terminal"  # noqa: S105 - no server ever sees it
BOT: Final = {"id": 0, "is_bot": True, "first_name": "Sommelier", "username": "sommelier_bot"}
COMMAND: Final = pattern(r"/\w{1,32}(?!\S)")
KEYS: Final = {"👍": "+", "👎": "-"}
"""What is typed to press a button whose label begins so; other buttons have numbers."""

JsonObject = dict[str, Any]


class LocalTelegram(BaseRequest):
    """Answers Bot API requests and keeps what the bot sends until it is taken.

    The chat's id lies above every id that Telegram gives (52 bits), so that a conversation here
    never mixes with one there. Without `shows_follow_ups` the buttons that go on
    from an answer are not listed.
    """

    def __init__(self, *, shows_follow_ups: bool = True) -> None:
        self._shows_follow_ups = shows_follow_ups
        self.chat_id = (1 << 52) + os.getpid()
        self.draft = ""
        """The HTML of what is shown of an answer that forms; it goes when anything is sent."""
        # Ids go on where the last conversation's ended: what is kept of turns is kept under them.
        self._ids = itertools.count(time.time_ns() // 1_000_000)
        self._sent: dict[int, str] = {}
        self._messages: dict[int, JsonObject] = {}
        self._choices: dict[str, tuple[JsonObject, JsonObject]] = {}
        self._asked: JsonObject | None = None
        self._methods: dict[str, Callable[[JsonObject], object]] = {
            "getMe": lambda _: BOT,
            "sendMessage": self._send_message,
            "sendMessageDraft": self._send_draft,
            "sendDocument": self._send_document,
            "sendPhoto": self._send_photo,
            "editMessageText": self._edit_text,
            "editMessageReplyMarkup": self._edit_reply_markup,
            "answerCallbackQuery": self._answer_callback_query,
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

    @property
    def hint(self) -> str:
        """How what was said last is rated; empty if it is not, or if a reply is asked for."""
        keys = [key for key in KEYS.values() if key in self._choices and not self._asked]
        return "   ".join(f"{self._choices[key][1]['text']} type {key}" for key in keys)

    def typed(self, line: str, bot: Bot) -> Update:
        """The update of a line that the person typed.

        The key or the number of a button under the last answer presses it; after a message that
        asks for a reply, the line is the reply.
        """
        person = {"id": self.chat_id, "is_bot": False, "first_name": ""}
        person["language_code"] = spoken()
        asked, self._asked = self._asked, None
        choice = None if asked else self._choices.get(line.strip())
        self._choices.clear()
        self._messages.clear()
        if choice is not None:
            pressed, button = choice
            self._messages[pressed["message_id"]] = pressed
            return self._pressed(pressed, button["callback_data"], person, bot)
        message = self._message(next(self._ids), line) | {"from": person}
        if command := COMMAND.match(line):
            entity = {"type": "bot_command", "offset": 0, "length": command.end()}
            message["entities"] = [entity]
        elif asked is not None:
            message["reply_to_message"] = asked
        return Update.de_json({"update_id": message["message_id"], "message": message}, bot)

    def _pressed(self, message: JsonObject, data: str, person: JsonObject, bot: Bot) -> Update:
        number = next(self._ids)
        query = {"id": str(number), "from": person, "chat_instance": "terminal", "data": data}
        update = {"update_id": number, "callback_query": query | {"message": message}}
        return Update.de_json(update, bot)

    def _message(self, message_id: int, text: str) -> JsonObject:
        chat = {"id": self.chat_id, "type": "private"}
        return {"message_id": message_id, "date": int(time.time()), "chat": chat, "text": text}

    def _send_draft(self, params: JsonObject) -> bool:
        self.draft = params["text"]
        return True

    def _send_message(self, params: JsonObject) -> JsonObject:
        self.draft = ""
        html, markup = params["text"], params.get("reply_markup", {})
        message = self._message(next(self._ids), visible_text(html))
        message |= {"entities": entities(html), "from": BOT}
        if markup.get("force_reply"):
            self._asked = message
        self._sent[message["message_id"]] = html
        self._offer(message, markup)
        return message

    def _edit_text(self, params: JsonObject) -> JsonObject | bool:
        if params["message_id"] in self._messages:
            self._sent[params["message_id"]] = params["text"]
        return self._edit_reply_markup(params)

    def _edit_reply_markup(self, params: JsonObject) -> JsonObject | bool:
        message = self._messages.get(params["message_id"])
        if message is None:
            return True
        for key in [key for key, (of, _) in self._choices.items() if of is message]:
            del self._choices[key]
        self._offer(message, params.get("reply_markup", {}))
        return message

    def _offer(self, message: JsonObject, markup: JsonObject) -> None:
        """Let the buttons of a message be pressed; those with numbers are shown, one a line."""
        message_id, rows = message["message_id"], markup.get("inline_keyboard", [])
        self._messages[message_id] = message
        message["reply_markup"] = {"inline_keyboard": rows}
        lines = []
        for button in itertools.chain.from_iterable(rows):
            key = KEYS.get(button["text"][:1]) or self._free_number()
            self._choices[key] = message, button
            is_shown = self._shows_follow_ups or not button["callback_data"].startswith(KIND)
            if key.isdigit() and is_shown:
                lines.append(f"<b>{key}</b> › {escape(button['text'], quote=False)}")
        if lines:
            before = [f"{self._sent[message_id]}\n"] if message_id in self._sent else []
            self._sent[message_id] = "\n".join(before + lines)

    def _free_number(self) -> str:
        return next(key for key in map(str, itertools.count(1)) if key not in self._choices)

    def _answer_callback_query(self, params: JsonObject) -> bool:
        if words := params.get("text"):
            self._sent[next(self._ids)] = f"<i>{escape(words, quote=False)}</i>"
        return True

    def _send_document(self, params: JsonObject) -> JsonObject:
        """A file is shown, as far as it is text."""
        name, content, *_ = params["files"][0]
        shown = escape(content.decode(errors="replace").rstrip(), quote=False)
        message_id = next(self._ids)
        self._sent[message_id] = f"<b>{escape(name, quote=False)}</b>\n<pre>{shown}</pre>"
        return self._message(message_id, name)

    def _send_photo(self, params: JsonObject) -> JsonObject:
        name, *_ = params["files"][0]
        message_id = next(self._ids)
        self._sent[message_id] = f"<i>[picture: {escape(name, quote=False)}]</i>"
        return self._message(message_id, name)


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
