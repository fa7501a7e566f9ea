"""A completion as OpenAI streams it: server-sent events, a piece of it in each."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.doubles.server import JsonObject, gone, hang_up

MOST_PIECES = 500


def events_of(completion: JsonObject, piece: int, *, tells_usage: bool) -> Iterator[bytes]:
    """The events of a completion, its texts in pieces of so many characters."""
    head = {name: completion[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    choice = completion["choices"][0]

    def event(delta: JsonObject, finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
        return data(head | {"choices": choices} | ({"usage": None} if tells_usage else {}))

    message = choice["message"]
    yield event({"role": "assistant", "content": "", "refusal": None})
    for name in ("reasoning_content", "content", "refusal"):
        for part in pieces(message.get(name) or "", piece):
            yield event({name: part})
    for index, call in enumerate(message.get("tool_calls", [])):
        function = call["function"]
        first = {"name": function["name"], "arguments": ""}
        yield event({"tool_calls": [call | {"index": index, "function": first}]})
        for part in pieces(function["arguments"], piece):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield event({}, choice["finish_reason"])
    if tells_usage:
        yield data(head | {"choices": [], "usage": completion["usage"]})
    yield b"data: [DONE]\n\n"


def data(chunk: JsonObject) -> bytes:
    """One event."""
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()


def pieces(text: str, size: int) -> Iterator[str]:
    """A text in pieces of so many characters, in some hundreds at most."""
    size = max(size, len(text) // MOST_PIECES)
    return (text[start : start + size] for start in range(0, len(text), size))


class EventStream(Response):
    """Events one after the other, `pause` seconds apart, and `whole` is called once all are sent.

    `left` is called instead when the client hangs up. When `cut`, half of them are sent and then
    the connection ends.
    """

    def __init__(
        self,
        request: Request,
        events: Sequence[bytes],
        pause: float,
        whole: Callable[[], object],
        left: Callable[[], object],
        *,
        cut: bool = False,
    ) -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self.request, self.pause, self.whole, self.cut = request, pause, whole, cut
        self.left = left
        self.events = events[: len(events) // 2] if cut else events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        for event in self.events:
            if self.pause:
                await asyncio.sleep(self.pause)
            if gone(self.request):
                self.left()
                return
            await send({"type": "http.response.body", "body": event, "more_body": True})
        if self.cut:
            await hang_up(self.request)
            return
        self.whole()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
