"""Telegram and a model that tell when a step is asked for and answered, so that a kill can hit."""

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable
from typing import Literal, get_args

from starlette.requests import Request
from starlette.responses import Response

from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, Step, answer_json, hang
from tests.doubles.server import JsonObject, hang_up

Boundary = Literal[
    "updates fetched",
    "model asked",
    "model answered",
    "send asked",
    "send done",
    "send answered",
]
"""Moments of a turn that are seen from outside, in their order. "asked": the request has arrived
and nothing was done yet. "done": it was done, and the answer is not sent yet."""

BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)
MARK = re.compile(r"\d+-\d+")
"""The name of a message, in its text and in the reply to it: chat and number."""


class Watch:
    """Calls `strike` with the port of the process that reaches a boundary, once; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.arm(None, lambda port: None)

    def arm(
        self, boundary: Boundary | None, strike: Callable[[int], None], passes: int = 0
    ) -> None:
        """Strike when the boundary is reached, after it was passed so many times; None: never."""
        with self._lock:
            self._boundary, self._strike, self._passes = boundary, strike, passes

    def reached(self, boundary: Boundary, request: Request) -> bool:
        """Note that a boundary was reached; return whether that killed the process that asked."""
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
            return Seen(
                response, lambda: self.watch.reached("updates fetched", request)
            )
        return response

    def replies(self) -> dict[int, list[str]]:
        """Return the first mark that each message names ("?": none), in order, by chat."""
        found: dict[int, list[str]] = {}
        for message in self.messages():
            marks = MARK.findall(message.get("text", ""))
            found.setdefault(message["chat"]["id"], []).append(
                marks[0] if marks else "?"
            )
        return found


class Seen(Response):
    """A response; `then` is called when it has been sent."""

    def __init__(self, response: Response, then: Callable[[], object]) -> None:
        self._response, self._then = response, then

    async def __call__(self, *asgi: object) -> None:
        await self._response(*asgi)  # type: ignore[arg-type]
        self._then()


class EchoModel(ModelServer):
    """Says of which messages it was asked, after `seconds`; keeps the first mark of each."""

    def __init__(self, watch: Watch, seconds: float = 0.05) -> None:
        super().__init__(default=self._echo)
        self.watch = watch
        self.seconds = seconds
        self.asked: list[str] = []

    async def _complete(self, request: Request) -> Response:
        if self.watch.reached("model asked", request):
            return await hang_up(request)
        response = await super()._complete(request)
        return Seen(response, lambda: self.watch.reached("model answered", request))

    def _echo(self, body: JsonObject) -> Step:
        texts = [
            message["content"]
            for message in body["messages"]
            if message["role"] == "user"
        ]
        marks = MARK.findall(json.dumps(texts[-1]))
        self.asked += marks[:1]
        intro = f"You asked about {' and '.join(marks)}."
        answer = answer_json(
            {"response_type": "informational", "intro": intro, "wines": []}
        )
        return hang(self.seconds, answer) if self.seconds else answer


async def sleep_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether `condition` held within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True
