"""Store the chats of a bot: apply Telegram's rules to its calls, and return what users see."""

import itertools
import json
import time

from starlette.responses import JSONResponse, Response

from tests.doubles.forms import Upload
from tests.doubles.server import JsonObject
from tests.doubles.telegram_html import EntitiesError, parse_html, utf16_length

MAX_TEXT, MAX_CAPTION = 4096, 1024
"""In UTF-16 units, after parsing."""
MAX_CALLBACK_BYTES = 64
NOT_MODIFIED = (
    "Bad Request: message is not modified: specified new message content and reply markup are "
    "exactly the same as a current content and reply markup of the message"
)


class ApiError(Exception):
    """A response with `ok: false`; the message is its description."""

    def __init__(self, status: int, description: str, **parameters: int | None) -> None:
        super().__init__(description)
        self.status = status
        self.parameters = {
            name: value for name, value in parameters.items() if value is not None
        }

    def to_response(self) -> Response:
        body: JsonObject = {
            "ok": False,
            "error_code": self.status,
            "description": str(self),
        }
        if self.parameters:
            body["parameters"] = self.parameters
        return JSONResponse(body, self.status)


class Chats:
    """The messages and drafts of all chats; methods with a call's parameters raise `ApiError`."""

    def __init__(self, bot: JsonObject) -> None:
        self._bot = bot
        self._ids = itertools.count(1)
        self._messages: dict[tuple[int, int], JsonObject] = {}
        self.drafts: dict[int, JsonObject] = {}

    def receive(self, text: str, chat_id: int, user_id: int) -> JsonObject:
        return {
            "message_id": next(self._ids),
            "date": int(time.time()),
            "chat": describe_chat(chat_id),
            "from": person(user_id),
            "text": text,
        }

    def messages(self, chat_id: int | None) -> list[JsonObject]:
        """Return the bot's current messages, oldest first, of one chat or of all if it is None."""
        return [
            message
            for (chat, _), message in self._messages.items()
            if chat_id in (None, chat)
        ]

    def send_message(self, params: JsonObject) -> JsonObject:
        return self._post(params, formatted(params, "text", MAX_TEXT))

    def send_file(
        self, params: JsonObject, files: dict[str, Upload], kind: str
    ) -> JsonObject:
        upload = files[kind]
        name = upload.filename
        file: JsonObject = {
            "file_id": name,
            "file_unique_id": name,
            "file_size": len(upload.data),
        }
        caption = formatted(params, "caption", MAX_CAPTION)
        if kind == "photo":
            return self._post(
                params, caption | {kind: [file | {"width": 1, "height": 1}]}
            )
        file |= {"duration": 1} if kind == "voice" else {"file_name": name}
        return self._post(params, caption | {kind: file})

    def edit_text(self, params: JsonObject) -> JsonObject:
        key = self._key(params)
        old = self._messages[key]
        new_content = formatted(params, "text", MAX_TEXT) | reply_markup(params)
        header = {name: old[name] for name in ("message_id", "date", "chat", "from")}
        if new_content == {
            name: old[name] for name in old.keys() - header.keys() - {"edit_date"}
        }:
            raise ApiError(400, NOT_MODIFIED)
        self._messages[key] = header | new_content | {"edit_date": int(time.time())}
        return self._messages[key]

    def edit_markup(self, params: JsonObject) -> JsonObject:
        key = self._key(params)
        old, markup = self._messages[key], reply_markup(params)
        if markup.get("reply_markup") == old.get("reply_markup"):
            raise ApiError(400, NOT_MODIFIED)
        self._messages[key] = {
            k: v for k, v in old.items() if k != "reply_markup"
        } | markup
        return self._messages[key]

    def act(self, params: JsonObject) -> bool:
        chat_id_of(params)
        return True

    def draft(self, params: JsonObject) -> bool:
        """Show a draft; an empty text shows Telegram's "thinking" placeholder."""
        chat_id = chat_id_of(params)
        if chat_id < 0:
            raise ApiError(
                400, "Bad Request: message drafts can be sent only to private chats"
            )
        content = (
            formatted(params, "text", MAX_TEXT) if params.get("text") else {"text": ""}
        )
        draft = {
            "draft_id": params["draft_id"],
            "can_stop": params.get("can_stop") is True,
        }
        self.drafts[chat_id] = content | draft
        return True

    def _post(self, params: JsonObject, content: JsonObject) -> JsonObject:
        chat_id, markup, message_id = (
            chat_id_of(params),
            reply_markup(params),
            next(self._ids),
        )
        message: JsonObject = {"message_id": message_id, "date": int(time.time())}
        message |= {"chat": describe_chat(chat_id), "from": self._bot}
        if thread := params.get("message_thread_id"):
            message |= {"message_thread_id": thread, "is_topic_message": True}
        self.drafts.pop(chat_id, None)
        self._messages[chat_id, message_id] = message | content | markup
        return self._messages[chat_id, message_id]

    def _key(self, params: JsonObject) -> tuple[int, int]:
        key = chat_id_of(params), int(params.get("message_id", 0))
        if key not in self._messages:
            raise ApiError(400, "Bad Request: message to edit not found")
        return key


def identity(token: str) -> JsonObject:
    return {
        "id": int(token.partition(":")[0]),
        "is_bot": True,
        "first_name": "Sommelier",
        "username": "sommelier_test_bot",
        "can_join_groups": True,
        "can_read_all_group_messages": False,
        "supports_inline_queries": True,
    }


def person(user_id: int) -> JsonObject:
    return {"id": user_id, "is_bot": False, "first_name": "Ada", "language_code": "en"}


def describe_chat(chat_id: int) -> JsonObject:
    if chat_id > 0:
        return {"id": chat_id, "type": "private", "first_name": "Ada"}
    return {"id": chat_id, "type": "supergroup", "title": "The wine club"}


def shown(message: JsonObject) -> str:
    file_name = message.get("document", {}).get("file_name", "")
    if photo := message.get("photo"):
        file_name = photo[-1]["file_id"]
    return str(message.get("text") or message.get("caption") or file_name)


def chat_id_of(params: JsonObject) -> int:
    if not isinstance(params.get("chat_id"), int):
        raise ApiError(400, "Bad Request: chat not found")
    return int(params["chat_id"])


def formatted(params: JsonObject, name: str, limit: int) -> JsonObject:
    """Return the text or caption of a call, without its markup, and its entities."""
    text, entities = str(params.get(name, "")).strip(), list[JsonObject]()
    if params.get("parse_mode"):
        assert params["parse_mode"] == "HTML"
        try:
            text, entities = parse_html(str(params.get(name, "")))
        except EntitiesError as error:
            raise ApiError(400, str(error)) from None
    if name == "text" and not text:
        raise ApiError(400, "Bad Request: message text is empty")
    if utf16_length(text) > limit:
        kind = "message" if name == "text" else "message caption"
        raise ApiError(400, f"Bad Request: {kind} is too long")
    entities_name = "entities" if name == "text" else "caption_entities"
    fields = {name: text, entities_name: entities}
    return {key: value for key, value in fields.items() if value}


def reply_markup(params: JsonObject) -> JsonObject:
    """Return the inline keyboard of a call as a field of its message; nothing if it has none."""
    markup = params.get("reply_markup")
    markup = json.loads(markup) if isinstance(markup, str) else markup
    rows = (markup or {}).get("inline_keyboard", [])
    buttons = [button for row in rows for button in row]
    sizes = [len(str(button.get("callback_data", "")).encode()) for button in buttons]
    if any(size > MAX_CALLBACK_BYTES for size in sizes):
        raise ApiError(400, "Bad Request: BUTTON_DATA_INVALID")
    return {"reply_markup": markup} if buttons else {}
