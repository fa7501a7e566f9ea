"""Imitate Telegram's Bot API, as far as a bot that answers messages needs it."""

import asyncio
import itertools
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.doubles.forms import Upload, parse_parameters
from tests.doubles.server import JsonObject, LoopbackServer, eventually, hang_up
from tests.doubles.telegram_chats import (
    MAX_TEXT,
    ApiError,
    Chats,
    describe_chat,
    formatted,
    identity,
    person,
    shown,
)
from tests.doubles.telegram_html import utf16_length

TOKEN = "123456789:AAFakeTokenOfTheBotApiDoubleForTests"
CHAT = 1001
COMMAND = re.compile(r"(?<!\S)/[A-Za-z0-9_]{1,32}(?:@\w+)?")
MAX_TOAST = 200
"""UTF-16 units of the text that answers a press on a button."""
MAX_INLINE_RESULTS = 50
ONLY_ON_REQUEST = {"message_reaction", "stopped_message_generation"}
"""Types of updates that are not sent unless `allowed_updates` names them."""


@dataclass
class Call:
    """A call of the bot, with its monotonic time; `status` is None until it is answered."""

    method: str
    params: JsonObject
    files: dict[str, Upload]
    time: float = field(default_factory=time.monotonic)
    status: int | None = None


@dataclass
class Fault:
    """A fault of the next `times` calls of `method`, in any chat if `chat_id` is None.

    Without an `error`, the call takes effect, then the connection is closed.
    """

    method: str
    times: int
    error: ApiError | None = None
    chat_id: int | None = None

    def use_up(self, call: Call) -> bool:
        """Return whether the fault affects `call`, and count it if so."""
        matches = self.method == call.method
        matches &= self.chat_id in (None, call.params.get("chat_id"))
        self.times -= matches
        return matches and self.times >= 0


class BotApi(LoopbackServer):
    """The server of one bot and its chats; `TELEGRAM_BASE_URL` is `base_url`.

    A chat with a negative id is a group. Public methods may be called from any thread; those that
    do something in a user's name return the id of the update. The default `user_id` is that of the
    private chat, or 1 in a group.
    """

    def __init__(self, token: str = TOKEN) -> None:
        super().__init__(
            [
                Route("/bot{token}/{method}", self._answer, methods=["GET", "POST"]),
                Route("/file/bot{token}/{name}", self._file),
            ]
        )
        self.token = token
        self.calls: list[Call] = []
        self.app_languages: dict[int, str] = {}
        """The language of each user's Telegram app, by user id."""
        self.menus: dict[str, list[JsonObject]] = {}
        """The menus of commands, by language; "" has the default menu."""
        self.files: dict[str, bytes] = {}
        self.webhook_url = ""
        self._chats = Chats(identity(token))
        self._updates: list[JsonObject] = []
        self._update_ids = itertools.count(700_000_001)
        self._query_ids = itertools.count(1)
        self._allowed: set[str] = set()
        self._answered_queries: set[object] = set()
        self._inline_results: dict[str, list[JsonObject]] = {}
        self._faults: list[Fault] = []
        self._delays: dict[str, float] = {}
        self._poll: asyncio.Future[bool] | None = None
        self._lock = threading.Lock()
        self._methods: dict[str, Callable[[Call], object]] = {
            "getMe": lambda call: identity(token),
            "deleteWebhook": self._set_webhook,
            "setWebhook": self._set_webhook,
            "setMyCommands": self._set_commands,
            "getFile": self._get_file,
            "sendMessage": lambda call: self._chats.send_message(call.params),
            "sendMessageDraft": lambda call: self._chats.draft(call.params),
            "sendDocument": lambda call: self._chats.send_file(
                call.params, call.files, "document"
            ),
            "sendPhoto": lambda call: self._chats.send_file(
                call.params, call.files, "photo"
            ),
            "sendVoice": lambda call: self._chats.send_file(
                call.params, call.files, "voice"
            ),
            "editMessageText": lambda call: self._chats.edit_text(call.params),
            "editMessageReplyMarkup": lambda call: self._chats.edit_markup(call.params),
            "sendChatAction": lambda call: self._chats.act(call.params),
            "getChatMember": lambda call: {"status": "member", "user": identity(token)},
            "answerCallbackQuery": self._answer_query,
            "answerInlineQuery": self._answer_inline,
        }

    def say(
        self,
        text: str,
        chat_id: int = CHAT,
        user_id: int | None = None,
        **fields: object,
    ) -> int:
        """Send `text` as a user; `fields` are further fields of the Message."""
        commands = [
            {
                "type": "bot_command",
                "offset": utf16_length(text[: command.start()]),
                "length": utf16_length(command[0]),
            }
            for command in COMMAND.finditer(text)
        ]
        entities = {"entities": commands} if commands else {}
        with self._lock:
            message = self._chats.receive(text, chat_id, user_id or max(chat_id, 1))
        return self.push({"message": message | entities | fields})

    def send(
        self,
        kind: str,
        data: bytes,
        chat_id: int = CHAT,
        caption: str = "",
        **fields: object,
    ) -> int:
        """Send a file as a user; `kind` is "photo", "document" or "voice".

        `fields` are further fields of the file, but `media_group_id` and `forward_origin` those of
        the message.
        """
        name = f"{kind}-{len(self.files) + 1}"
        self.files[name] = data
        message_keys = fields.keys() & {"media_group_id", "forward_origin"}
        message_fields = {key: fields.pop(key) for key in message_keys}
        file: JsonObject = {
            "file_id": name,
            "file_unique_id": name,
            "file_size": len(data),
        }
        file |= {"duration": 1} if kind == "voice" else {}
        file |= {"width": 1, "height": 1} if kind == "photo" else {}
        content: JsonObject = {
            kind: [file | fields] if kind == "photo" else file | fields
        }
        content |= {"caption": caption} if caption else {}
        return self.say("", chat_id, None, **content, **message_fields)

    def press(self, message: JsonObject, data: str, user_id: int | None = None) -> int:
        """Press a button of the bot's `message`, in its current or an earlier state, as a user."""
        query = {
            "id": str(next(self._query_ids)),
            "from": person(user_id or max(message["chat"]["id"], 1)),
            "chat_instance": "1",
            "message": message,
            "data": data,
        }
        return self.push({"callback_query": query})

    def react(
        self,
        message: JsonObject,
        emoji: str,
        *,
        before: str = "",
        user_id: int | None = None,
        **fields: object,
    ) -> int:
        """React to the bot's `message` as a user; "" removes the reaction."""
        chat = message["chat"]
        reaction = {
            "chat": chat,
            "message_id": message["message_id"],
            "user": person(user_id or max(chat["id"], 1)),
            "date": int(time.time()),
            "old_reaction": [{"type": "emoji", "emoji": before}] if before else [],
            "new_reaction": [{"type": "emoji", "emoji": emoji}] if emoji else [],
        }
        return self.push({"message_reaction": reaction | fields})

    def ask_inline(self, words: str, user_id: int = CHAT) -> str:
        """Type `words` after the bot's name in some chat, as a user; return the query's id."""
        query_id = str(next(self._query_ids))
        query = {"id": query_id, "from": person(user_id), "query": words, "offset": ""}
        self.push({"inline_query": query | {"chat_type": "group"}})
        return query_id

    def inline_results(self, query_id: str) -> list[JsonObject] | None:
        """Return the results of an inline query with their rendered messages, or None."""
        return self._inline_results.get(query_id)

    def stop_draft(self, chat_id: int = CHAT) -> int:
        """Press Stop under the draft in a chat, as a user."""
        draft = self.draft(chat_id)
        assert draft is not None, "there is no draft"
        assert draft["can_stop"], draft
        stopped = {"chat": describe_chat(chat_id), "draft_id": draft["draft_id"]}
        return self.push({"stopped_message_generation": stopped})

    def draft(self, chat_id: int = CHAT) -> JsonObject | None:
        with self._lock:
            return self._chats.drafts.get(chat_id)

    @property
    def drafts(self) -> list[Call]:
        """Return the calls that showed drafts, oldest first; `params["text"]` is the HTML."""
        return [
            call for call in self.calls_of("sendMessageDraft") if call.status == 200
        ]

    def push(self, update: JsonObject) -> int:
        """Queue an update and return its id; it gets a new one unless it has one."""
        with self._lock:
            queued = {"update_id": next(self._update_ids)} | update
            for part in update.values():
                sender = part.get("from") if isinstance(part, dict) else None
                if isinstance(sender, dict) and sender.get("id") in self.app_languages:
                    sender["language_code"] = self.app_languages[sender["id"]]
            self._updates.append(queued)
        self.call_soon(lambda: self._end_poll(has_updates=True))
        return int(queued["update_id"])

    def fail(
        self,
        method: str,
        status: int,
        description: str = "",
        retry_after: int | None = None,
        times: int = 1,
        chat_id: int | None = None,
        migrate_to: int | None = None,
    ) -> None:
        """Answer the next `times` calls of `method` with an error, without any effect."""
        waiting = (
            ""
            if retry_after is None
            else f"Too Many Requests: retry after {retry_after}"
        )
        text = description or waiting or "Internal Server Error"
        error = ApiError(
            status, text, retry_after=retry_after, migrate_to_chat_id=migrate_to
        )
        self._faults.append(Fault(method, times, error, chat_id))

    def drop_after(
        self, method: str, times: int = 1, chat_id: int | None = None
    ) -> None:
        """Let the next `times` calls of `method` take effect, but hang up without an answer."""
        self._faults.append(Fault(method, times, None, chat_id))

    def delay(self, method: str, seconds: float) -> None:
        """Delay all calls of `method` before they take effect; 0 ends the delay."""
        self._delays[method] = seconds

    def calls_of(self, method: str) -> list[Call]:
        return [call for call in list(self.calls) if call.method == method]

    @property
    def toasts(self) -> list[str]:
        """Return the text of each answer to a press, oldest first; "" if it has none."""
        answered = [
            call for call in self.calls_of("answerCallbackQuery") if call.status == 200
        ]
        return [str(call.params.get("text", "")) for call in answered]

    def messages(self, chat_id: int | None = None) -> list[JsonObject]:
        with self._lock:
            return self._chats.messages(chat_id)

    def sent(self, chat_id: int | None = None) -> list[str]:
        """Return what users see of the bot: texts without markup, captions, file names."""
        return [shown(message) for message in self.messages(chat_id)]

    @property
    def pending(self) -> int:
        """Return the number of updates that the bot has not acknowledged."""
        return len(self._updates)

    async def wait_for_message(
        self,
        n: int = 1,
        chat_id: int | None = None,
        timeout: float = 60,  # noqa: ASYNC109
    ) -> list[str]:
        """Return `sent()` once it holds at least `n` texts."""

        def missing() -> str:
            calls = [(call.method, call.status) for call in self.calls[-10:]]
            return f"{n} message(s) wanted, a person sees {self.sent(chat_id)}; last calls: {calls}"

        await eventually(
            lambda: len(self.sent(chat_id)) >= n, seconds=timeout, otherwise=missing
        )
        return self.sent(chat_id)

    async def _answer(self, request: Request) -> Response:
        if request.path_params["token"] != self.token:
            return ApiError(401, "Unauthorized").to_response()
        params, files = await parse_parameters(request)
        call = Call(request.path_params["method"], params, files)
        self.calls.append(call)
        await asyncio.sleep(self._delays.get(call.method, 0))
        fault = next((fault for fault in self._faults if fault.use_up(call)), None)
        try:
            if fault is not None and fault.error is not None:
                raise fault.error
            result = await self._result(call)
        except ApiError as error:
            call.status = error.status
            return error.to_response()
        if fault is not None:
            return await hang_up(request)
        call.status = 200
        return JSONResponse({"ok": True, "result": result})

    async def _result(self, call: Call) -> object:
        if call.method == "getUpdates":
            return await self._get_updates(call.params)
        if call.method not in self._methods:
            raise ApiError(404, "Not Found: method not found")
        with self._lock:
            return self._methods[call.method](call)

    async def _get_updates(self, params: JsonObject) -> list[JsonObject]:
        if self.webhook_url:
            raise ApiError(
                409, "Conflict: can't use getUpdates method while webhook is active"
            )
        self._end_poll(has_updates=False)
        self._store_allowed(params)
        offset = int(params.get("offset", 0))
        with self._lock:
            self._updates = [
                update for update in self._updates if update["update_id"] >= offset
            ]
        deadline = time.monotonic() + float(params.get("timeout", 0))
        while not (ready := self._ready()[:100]) and deadline > time.monotonic():
            await self._wait_for_update(deadline - time.monotonic())
        return ready

    async def _wait_for_update(self, seconds: float) -> None:
        """Wait at most `seconds` for an update; a newer poll ends this one with an error."""
        poll = self._poll = asyncio.get_running_loop().create_future()
        await asyncio.wait([poll], timeout=seconds)
        if poll.done() and not poll.result():
            raise ApiError(409, "Conflict: terminated by other getUpdates request")

    def _end_poll(self, *, has_updates: bool) -> None:
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(has_updates)

    def _ready(self) -> list[JsonObject]:
        def is_allowed(update: JsonObject) -> bool:
            kinds = update.keys() - {"update_id"}
            return bool(
                kinds & self._allowed if self._allowed else kinds - ONLY_ON_REQUEST
            )

        with self._lock:
            self._updates = list(filter(is_allowed, self._updates))
            return list(self._updates)

    def _store_allowed(self, params: JsonObject) -> None:
        if "allowed_updates" in params:
            self._allowed = set(params["allowed_updates"])

    def _set_webhook(self, call: Call) -> bool:
        self.webhook_url = str(call.params.get("url", ""))
        self._store_allowed(call.params)
        return True

    def _get_file(self, call: Call) -> JsonObject:
        name = str(call.params.get("file_id", ""))
        if name not in self.files:
            raise ApiError(400, "Bad Request: invalid file_id")
        size = len(self.files[name])
        return {
            "file_id": name,
            "file_unique_id": name,
            "file_size": size,
            "file_path": name,
        }

    async def _file(self, request: Request) -> Response:
        data = self.files.get(request.path_params["name"])
        has_token = request.path_params["token"] == self.token
        return (
            Response(data)
            if data is not None and has_token
            else Response(status_code=404)
        )

    def _answer_inline(self, call: Call) -> bool:
        results = call.params["results"]
        results = json.loads(results) if isinstance(results, str) else results
        ids = [str(result["id"]) for result in results]
        if len(results) > MAX_INLINE_RESULTS or len({*ids}) < len(ids):
            raise ApiError(400, "Bad Request: RESULT_ID_INVALID")
        for result in results:
            content = result["input_message_content"]
            message = {
                "text": content["message_text"],
                "parse_mode": content.get("parse_mode"),
            }
            result["message"] = formatted(message, "text", MAX_TEXT)
        self._inline_results[str(call.params["inline_query_id"])] = results
        return True

    def _answer_query(self, call: Call) -> bool:
        if utf16_length(str(call.params.get("text", ""))) > MAX_TOAST:
            raise ApiError(400, "Bad Request: MESSAGE_TOO_LONG")
        if call.params["callback_query_id"] in self._answered_queries:
            raise ApiError(400, "Bad Request: query is too old or query ID is invalid")
        self._answered_queries.add(call.params["callback_query_id"])
        return True

    def _set_commands(self, call: Call) -> bool:
        self.menus[str(call.params.get("language_code", ""))] = call.params["commands"]
        return True
