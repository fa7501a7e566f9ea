"""Imitate a server of OpenAI's API whose answers are scripted by tests."""

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.doubles.forms import Upload, parse_parameters
from tests.doubles.openai_rules import history_error, strict_error
from tests.doubles.server import HalfResponse, JsonObject, LoopbackServer, gone, hang_up

MAX_PIECES = 500


@dataclass(frozen=True)
class Step:
    """The answer to one request; the functions below make steps."""

    message: JsonObject | None = None
    """The message of a completion; without one, `body` is the response."""
    finish_reason: str = "stop"
    usage: tuple[int, int] | None = None
    """Prompt and completion tokens; None counts a token for every 4 characters."""
    cached: int = 0
    reasoning: int = 0
    body: bytes = b""
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0
    """The delay before the response."""
    piece: int = 4
    """The number of characters in an event of a stream."""
    pause: float = 0
    """Seconds between two events of a stream."""
    ending: Literal["whole", "cut", "reset", "silent"] = "whole"


Script = Step | Callable[[JsonObject], Step]
"""A step, or a function of the request's JSON that returns one."""


def answer(
    content: str,
    finish_reason: str = "stop",
    usage: tuple[int, int] | None = None,
    cached: int = 0,
) -> Step:
    """Answer with `content`; `cached` prompt tokens came from the cache."""
    return Step({"content": content}, finish_reason, usage, cached)


def answer_json(answer_object: object, finish_reason: str = "stop") -> Step:
    return answer(json.dumps(answer_object, ensure_ascii=False), finish_reason)


def call(name: str, arguments: JsonObject | str, id: str | None = None) -> JsonObject:
    """Return an item of `tool_calls`; a `str` is sent unchanged. Ids default to call_1, call_2 …"""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def tool_call(name: str, arguments: JsonObject | str, id: str | None = None) -> Step:
    return tool_calls([call(name, arguments, id)])


def tool_calls(calls: Sequence[JsonObject], content: str | None = None) -> Step:
    return Step({"content": content, "tool_calls": list(calls)}, "tool_calls")


def refusal(text: str) -> Step:
    return Step({"content": None, "refusal": text})


def reasoning_only(text: str, content: str | None = None) -> Step:
    """Answer with reasoning and, by default, no content, as some open models do."""
    return Step({"content": content, "reasoning_content": text})


def no_choices() -> Step:
    return raw(
        json.dumps({"id": "x", "object": "chat.completion", "choices": []}).encode()
    )


def raw(body: bytes, status: int = 200, content_type: str = "application/json") -> Step:
    return Step(body=body, status=status, content_type=content_type)


def error(
    status: int,
    body: JsonObject | None = None,
    headers: Mapping[str, str] | None = None,
) -> Step:
    """Answer with an HTTP error; `body` defaults to an error of OpenAI."""
    content = body or error_body(f"The server answers {status}.")
    return Step(body=json.dumps(content).encode(), status=status, headers=headers or {})


def hang(seconds: float, then: Step | None = None) -> Step:
    """Wait for `seconds`, then do the step `then`; without one, close the connection."""
    return replace(then or Step(ending="silent"), seconds=seconds)


def paced(step: Step, tokens_per_second: float = 40, piece: int = 4) -> Step:
    """Stream a step at this speed; a token has four characters."""
    return replace(step, pause=piece / 4 / tokens_per_second, piece=piece)


def reset() -> Step:
    """The connection is reset before any byte of an answer."""
    return Step(ending="reset")


def cut(content: str = "This answer will never arrive whole.") -> Step:
    """Headers and half of a body, then the end of the connection."""
    return replace(answer(content), ending="cut")


def error_body(message: str, kind: str = "invalid_request_error") -> JsonObject:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


@dataclass(frozen=True)
class ModelRequest:
    """A request; header names are in lower case, and `bytes` is the size of the body."""

    json: JsonObject
    headers: Mapping[str, str]
    bytes: int
    came_at: float = field(default_factory=time.time)


class Totals(NamedTuple):
    """The tokens of completely sent completions, to be compared with those the bot counted."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


class Recording(NamedTuple):
    """A request to /audio/transcriptions."""

    params: JsonObject
    file: Upload


class ModelServer(LoopbackServer):
    """A server that answers each request with the next step of its script, then with `default`.

    `OPENAI_BASE_URL` is `base_url`, which ends in /v1. Messages that OpenAI would refuse get a 400
    and are listed in `violations`; requests after the last step get a 500 and are listed in
    `unscripted`. Neither uses up a step, and `verify` raises for both.

    streaming: "no" refuses `stream`, "whole" ignores it, and "no_usage" sends no usage in streams.
    """

    def __init__(
        self,
        *steps: Script,
        default: Script | None = None,
        streaming: Literal["yes", "no", "whole", "no_usage"] = "yes",
    ) -> None:
        super().__init__(
            [
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/v1/audio/transcriptions", self._transcribe, methods=["POST"]),
                Route("/v1/audio/speech", self._speak, methods=["POST"]),
            ]
        )
        self.default = default
        self.strict = False
        """Whether to refuse requests that only OpenAI itself refuses."""
        self.streaming = streaming
        self.requests: list[ModelRequest] = []
        self.violations: list[str] = []
        self.unscripted: list[ModelRequest] = []
        self.usage = Totals()
        self.abandoned_streams = 0
        """The number of streams that were not sent completely."""
        self.recordings: list[Recording] = []
        self.speech_requests: list[JsonObject] = []
        self._steps: deque[Script] = deque(steps)
        self._transcripts: deque[Step] = deque()
        self._call_ids = itertools.count(1)
        self._ids = itertools.count(1)

    def start(self) -> "ModelServer":
        super().start()
        self.base_url += "/v1"
        return self

    def script(self, *steps: Script) -> None:
        self._steps.extend(steps)

    def hear(self, *transcripts: Step | str) -> None:
        """Script the answers to the next recordings: transcripts, or steps with a body."""
        for item in transcripts:
            step = (
                raw(json.dumps({"text": item}).encode())
                if isinstance(item, str)
                else item
            )
            self._transcripts.append(step)

    def verify(self) -> None:
        """Raise AssertionError if a request was invalid or came after the last step."""
        if self.violations:
            raise AssertionError(f"OpenAI would refuse: {self.violations}")
        if self.unscripted:
            messages = [request.json["messages"][-1] for request in self.unscripted]
            raise AssertionError(
                f"unscripted requests, with these last messages: {messages}"
            )

    async def _transcribe(self, request: Request) -> Response:
        params, files = await parse_parameters(request)
        self.recordings.append(Recording(params, files["file"]))
        step = self._transcripts.popleft() if self._transcripts else error(500)
        if step.seconds:
            await asyncio.sleep(step.seconds)
        return Response(step.body, step.status, {"content-type": step.content_type})

    async def _speak(self, request: Request) -> Response:
        self.speech_requests.append(json.loads(await request.body()))
        return Response(
            b"OggS" + self.speech_requests[-1]["input"].encode(), media_type="audio/ogg"
        )

    async def _models(self, _: Request) -> Response:
        data = [{"id": "gpt-4o", "object": "model", "owned_by": "tests"}]
        return JSONResponse({"object": "list", "data": data})

    async def _complete(self, request: Request) -> Response:
        body = await request.body()
        received = ModelRequest(json.loads(body), dict(request.headers), len(body))
        self.requests.append(received)
        if problem := self._problem(received.json):
            return JSONResponse(error_body(problem), 400)
        step = self._next_step(received)
        if step.seconds:
            await asyncio.sleep(step.seconds)
        if step.ending in ("reset", "silent"):
            return await hang_up(request, reset=step.ending == "reset")
        return self._response(request, received, step)

    def _problem(self, body: JsonObject) -> str | None:
        if problem := history_error(body.get("messages", [])):
            self.violations.append(problem)
            return problem
        if body.get("stream") and self.streaming == "no":
            return "Unsupported value: 'stream'. This server does not stream."
        return strict_error(body) if self.strict else None

    def _next_step(self, received: ModelRequest) -> Step:
        step = self._steps.popleft() if self._steps else self.default
        if step is None:
            self.unscripted.append(received)
            return error(500, error_body("The script of this test has no step left."))
        return step if isinstance(step, Step) else step(received.json)

    def _response(
        self, request: Request, received: ModelRequest, step: Step
    ) -> Response:
        headers = {"content-type": step.content_type, **step.headers}
        if step.message is None:
            return Response(step.body, step.status, headers)
        usage = count_tokens(received, step)
        completion = self._completion(received.json, step, usage)
        if received.json.get("stream") and self.streaming != "whole":
            has_usage = (
                "stream_options" in received.json and self.streaming != "no_usage"
            )
            events = [*to_events(completion, step.piece, has_usage=has_usage)]
            streamed = self._stream(request, events, step, usage)
            return StreamingResponse(streamed, media_type="text/event-stream")
        body = json.dumps(completion, ensure_ascii=False).encode()
        if step.ending == "cut":
            return HalfResponse(request, body, headers)
        if not gone(request):
            self._count(usage)
        return Response(body, step.status, headers)

    async def _stream(
        self, request: Request, events: Sequence[bytes], step: Step, usage: Totals
    ) -> AsyncIterator[bytes]:
        """Send the events, with pauses; if the step's ending is "cut", only the first half."""
        is_cut, is_sent = step.ending == "cut", False
        try:
            for event in events[: len(events) // 2] if is_cut else events:
                await asyncio.sleep(step.pause)
                if gone(request):
                    return
                yield event
            is_sent = True
        finally:
            self.abandoned_streams += not is_sent
        if is_cut:
            await hang_up(request)
        else:
            self._count(usage)

    def _count(self, usage: Totals) -> None:
        self.usage = Totals(*map(sum, zip(self.usage, usage, strict=True)))

    def _completion(self, body: JsonObject, step: Step, usage: Totals) -> JsonObject:
        message: JsonObject = {
            "role": "assistant",
            "refusal": None,
            **(step.message or {}),
        }
        if "tool_calls" in message:
            message["tool_calls"] = [
                {**call, "id": call["id"] or f"call_{next(self._call_ids)}"}
                for call in message["tool_calls"]
            ]
        choice = {"index": 0, "message": message, "finish_reason": step.finish_reason}
        return {
            "id": f"chatcmpl-{next(self._ids)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body.get("model", ""),
            "choices": [choice | {"logprobs": None}],
            "usage": {
                "prompt_tokens": usage.prompt,
                "completion_tokens": usage.completion,
                "total_tokens": usage.prompt + usage.completion,
                "prompt_tokens_details": {"cached_tokens": usage.cached},
                "completion_tokens_details": {"reasoning_tokens": step.reasoning},
            },
        }


def count_tokens(request: ModelRequest, step: Step) -> Totals:
    """Return the scripted tokens of a completion, by default a quarter of its characters."""
    prompt = len(json.dumps(request.json["messages"], ensure_ascii=False)) // 4
    completion = len(json.dumps(step.message, ensure_ascii=False)) // 4
    prompt, completion = step.usage or (prompt, completion)
    return Totals(prompt, completion, step.cached)


def to_events(
    completion: JsonObject, piece: int, *, has_usage: bool
) -> Iterator[bytes]:
    """Yield the events of a streamed completion, its texts in pieces of `piece` characters."""
    head = {name: completion[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    choice = completion["choices"][0]

    def event(delta: JsonObject, finish: str | None = None) -> bytes:
        choices = [
            {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        ]
        return data(
            head | {"choices": choices} | ({"usage": None} if has_usage else {})
        )

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
            yield event(
                {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
            )
    yield event({}, choice["finish_reason"])
    if has_usage:
        yield data(head | {"choices": [], "usage": completion["usage"]})
    yield b"data: [DONE]\n\n"


def data(chunk: JsonObject) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()


def pieces(text: str, size: int) -> Iterator[str]:
    size = max(size, len(text) // MAX_PIECES)
    return (text[start : start + size] for start in range(0, len(text), size))
