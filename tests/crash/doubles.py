"""Telegram and a model that tell when a step is asked for and answered, so that a kill can hit."""

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, Step, answer_json, hang
from tests.doubles.server import JsonObject, gone, hang_up

Boundary = Literal[
    "updates fetched", "model asked", "model answered", "send asked", "send done", "send answered"
]
"""Moments of a turn that are seen from outside, in their order. "asked": the request has arrived
and nothing was done yet. "done": it was done, and the answer is not sent yet."""

BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)
MARK = re.compile(r"\d+-\d+")
"""The name of a message, in its text and in the reply to it: chat and number."""


class Watch:
    """Calls `strike` with the port of who reached a boundary, the next time one does.

    It may be armed from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boundary: Boundary | None = None
        self._passes = 0
        self._strike: Callable[[int], None] = lambda port: None

    def arm(self, boundary: Boundary, strike: Callable[[int], None], passes: int = 0) -> None:
        """Strike when the boundary is reached, after it was passed so many times."""
        with self._lock:
            self._boundary, self._strike, self._passes = boundary, strike, passes

    def disarm(self) -> None:
        with self._lock:
            self._boundary = None

    def reached(self, boundary: Boundary, request: Request) -> bool:
        """Tell that a boundary was reached; whether that killed who asked."""
        with self._lock:
            if boundary != self._boundary:
                return False
            self._passes -= 1
            if self._passes >= 0:
                return False
            self._boundary = None
        self._strike(request.client.port if request.client else 0)
        return True


class WatchedBotApi(BotApi):
    """Telegram whose `watch` sees updates fetched and messages sent."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch

    async def _answer(self, request: Request) -> Response:
        method = request.path_params["method"].lower()
        if method == "sendmessage" and self.watch.reached("send asked", request):
            return await hang_up(request)
        response = await super()._answer(request)
        if method == "sendmessage":
            if self.watch.reached("send done", request):
                return await hang_up(request)
            return Seen(response, lambda: self.watch.reached("send answered", request))
        if method == "getupdates" and b"update_id" in response.body:
            return Seen(response, lambda: self.watch.reached("updates fetched", request))
        return response

    def replies(self) -> dict[int, list[str]]:
        """What people read: by chat the marks of the messages that replies name, in order."""
        found: dict[int, list[str]] = {}
        for message in self.messages():
            found.setdefault(message["chat"]["id"], []).append(shown(message.get("text", "")))
        return found


class Seen(Response):
    """A response; `then` is called when it has been sent."""

    def __init__(self, response: Response, then: Callable[[], object]) -> None:
        self._response, self._then = response, then

    async def __call__(self, *asgi: object) -> None:
        await self._response(*asgi)  # type: ignore[arg-type]
        self._then()


@dataclass
class Asked:
    """One request to the model, about the message with this mark."""

    mark: str
    time: float = field(default_factory=time.time)


class EchoModel(ModelServer):
    """Says of which message it was asked, after `seconds`."""

    def __init__(self, watch: Watch, seconds: float = 0.05) -> None:
        super().__init__(default=self._echo)
        self.watch = watch
        self.seconds = seconds
        self.asked: list[Asked] = []
        self.overlapping: list[str] = []
        """The messages that were asked about while another of their chat was."""
        self._asking: dict[str, Request] = {}

    async def _complete(self, request: Request) -> Response:
        if self.watch.reached("model asked", request):
            return await hang_up(request)
        mark = mark_of(json.loads(await request.body()))
        chat = mark.partition("-")[0]
        if chat in self._asking and not gone(self._asking[chat]):
            self.overlapping.append(mark)
        self._asking[chat] = request
        try:
            response = await super()._complete(request)
        finally:
            if self._asking.get(chat) is request:
                del self._asking[chat]
        if gone(request):
            return JSONResponse({})
        return Seen(response, lambda: self.watch.reached("model answered", request))

    def _echo(self, body: JsonObject) -> Step:
        mark = mark_of(body)
        self.asked.append(Asked(mark))
        intro = f"You asked about {' and '.join(MARK.findall(said_last(body)))}."
        said = answer_json({"response_type": "informational", "intro": intro, "wines": []})
        return hang(self.seconds, said) if self.seconds else said


def mark_of(body: JsonObject) -> str:
    """The name of the message that a model is asked about."""
    return shown(said_last(body))


def said_last(body: JsonObject) -> str:
    """The newest words of people."""
    return str([each["content"] for each in body["messages"] if each["role"] == "user"][-1])


def shown(text: str) -> str:
    """The name of the message that a text is about."""
    found = MARK.findall(text)
    return found[0] if found else "?"


async def sleep_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether `condition` held within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True
