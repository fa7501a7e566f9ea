"""A language model that says what a test scripted, behind OpenAI's chat completions."""

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.doubles.forms import Upload, parse_body
from tests.doubles.model_steps import (
    Script,
    Step,
    answer,
    answer_json,
    call,
    cut,
    error,
    error_body,
    hang,
    no_choices,
    null_content,
    paced,
    raw,
    reasoning_only,
    refusal,
    reset,
    tool_call,
    tool_calls,
)
from tests.doubles.model_stream import EventStream, events_of
from tests.doubles.openai_rules import history_error, strict_error
from tests.doubles.server import HalfResponse, JsonObject, LoopbackServer, gone, hang_up

__all__ = [
    "ModelRequest",
    "ModelServer",
    "Script",
    "Step",
    "Totals",
    "answer",
    "answer_json",
    "call",
    "cut",
    "error",
    "error_body",
    "hang",
    "no_choices",
    "null_content",
    "paced",
    "raw",
    "reasoning_only",
    "refusal",
    "reset",
    "tool_call",
    "tool_calls",
]

MODELS = ("gpt-4o", "gpt-4o-mini")


@dataclass(frozen=True)
class ModelRequest:
    """A request as it arrived; header names are in lower case, `bytes` is the body's size."""

    json: JsonObject
    headers: Mapping[str, str]
    bytes: int


@dataclass(frozen=True)
class Totals:
    """What was counted for completions that were sent whole, to hold against a ledger."""

    requests: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0


@dataclass(frozen=True)
class Recording:
    """A recording as it arrived at /audio/transcriptions."""

    params: JsonObject
    file: Upload


class ModelServer(LoopbackServer):
    """Answers each request with the next step of its script, then with `default`.

    `OPENAI_BASE_URL` is `base_url`, which ends in /v1. A history that OpenAI refuses gets a 400
    and stands in `violations`; a request beyond the script gets a 500 and stands in `unscripted`.
    Neither uses up a step, and `verify` raises for both.

    strict: also refuse what only OpenAI itself refuses (see `openai_rules.strict_error`).
    knows_only_max_tokens: refuse `max_completion_tokens`, as older servers do.
    rejects_response_format: refuse `response_format`, as small servers do.
    streaming: "no" refuses `stream`, "whole" answers whole all the same, "no_options" refuses
    `stream_options`, "no_usage" never says what a stream used.
    """

    def __init__(
        self,
        *steps: Script,
        default: Script | None = None,
        strict: bool = False,
        knows_only_max_tokens: bool = False,
        rejects_response_format: bool = False,
        streaming: Literal["yes", "no", "whole", "no_options", "no_usage"] = "yes",
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
        self.strict = strict
        self.knows_only_max_tokens = knows_only_max_tokens
        self.rejects_response_format = rejects_response_format
        self.streaming = streaming
        self.requests: list[ModelRequest] = []
        self.violations: list[str] = []
        self.unscripted: list[ModelRequest] = []
        self.usage = Totals()
        self.left = 0
        """From how many streams the client went away."""
        self.recordings: list[Recording] = []
        self.spoken: list[JsonObject] = []
        self._steps: deque[Script] = deque(steps)
        self._heard: deque[Step] = deque()
        self._call_ids = itertools.count(1)
        self._ids = itertools.count(1)

    def start(self) -> "ModelServer":
        """Listen; `base_url` is set when this returns."""
        super().start()
        self.base_url += "/v1"
        return self

    def script(self, *steps: Script) -> None:
        """Add steps to the end of the script."""
        self._steps.extend(steps)

    def hear(self, *said: Step | str) -> None:
        """Say what is heard in the next recordings: a text, or a step whose body is sent."""
        for each in said:
            told = raw(json.dumps({"text": each}).encode()) if isinstance(each, str) else each
            self._heard.append(told)

    @property
    def steps_left(self) -> int:
        """How many steps of the script were not used."""
        return len(self._steps)

    def check_history(self, messages: Sequence[JsonObject]) -> None:
        """Hold a list of messages against OpenAI's rules.

        Raises:
            AssertionError: OpenAI would refuse it; the text says why.
        """
        if problem := history_error(messages):
            raise AssertionError(problem)

    def verify(self) -> None:
        """Raise AssertionError if a request broke the rules or was not foreseen by the script."""
        if self.violations:
            raise AssertionError(f"OpenAI would refuse: {self.violations}")
        if self.unscripted:
            last = [request.json["messages"][-1] for request in self.unscripted]
            raise AssertionError(f"requests beyond the script, by their last message: {last}")

    async def _transcribe(self, request: Request) -> Response:
        params, files = parse_body(request.headers["content-type"], await request.body())
        self.recordings.append(Recording(params, files["file"]))
        step = self._heard.popleft() if self._heard else error(500)
        if step.seconds:
            await asyncio.sleep(step.seconds)
        return Response(step.body, step.status, {"content-type": step.content_type})

    async def _speak(self, request: Request) -> Response:
        self.spoken.append(json.loads(await request.body()))
        return Response(b"OggS" + self.spoken[-1]["input"].encode(), media_type="audio/ogg")

    async def _models(self, _: Request) -> Response:
        data = [{"id": name, "object": "model", "owned_by": "tests"} for name in MODELS]
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
        if "stream_options" in body and self.streaming == "no_options":
            return "Unrecognized request argument supplied: stream_options"
        if self.knows_only_max_tokens and "max_completion_tokens" in body:
            return (
                "Unsupported parameter: 'max_completion_tokens' is not supported with this model. "
                "Use 'max_tokens' instead."
            )
        if self.rejects_response_format and "response_format" in body:
            return "Unsupported parameter: 'response_format' is not supported with this model."
        return strict_error(body) if self.strict else None

    def _next_step(self, received: ModelRequest) -> Step:
        step = self._steps.popleft() if self._steps else self.default
        if step is None:
            self.unscripted.append(received)
            return error(500, error_body("The script of this test has no step left."))
        return step if isinstance(step, Step) else step(received.json)

    def _response(self, request: Request, received: ModelRequest, step: Step) -> Response:
        headers = {"content-type": step.content_type, **step.headers}
        if step.message is None:
            return Response(step.body, step.status, headers)
        usage = counted(received, step)
        completion = self._completion(received.json, step, usage)
        if received.json.get("stream") and self.streaming != "whole":
            tells = "stream_options" in received.json and self.streaming != "no_usage"
            events = [*events_of(completion, step.piece, tells_usage=tells)]
            whole = partial(self._count, usage)
            cut = step.ending == "cut"
            return EventStream(request, events, step.pause, whole, self._left, cut=cut)
        body = json.dumps(completion, ensure_ascii=False).encode()
        if step.ending == "cut":
            return HalfResponse(request, body, headers)
        if not gone(request):
            self._count(usage)
        return Response(body, step.status, headers)

    def _left(self) -> None:
        self.left += 1

    def _count(self, usage: Totals) -> None:
        total = self.usage
        self.usage = Totals(
            total.requests + 1,
            total.prompt + usage.prompt,
            total.completion + usage.completion,
            total.cached + usage.cached,
        )

    def _completion(self, body: JsonObject, step: Step, usage: Totals) -> JsonObject:
        message: JsonObject = {"role": "assistant", "refusal": None, **(step.message or {})}
        if "tool_calls" in message:
            message["tool_calls"] = [
                {**one, "id": one["id"] or f"call_{next(self._call_ids)}"}
                for one in message["tool_calls"]
            ]
        return {
            "id": f"chatcmpl-{next(self._ids)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": body.get("model", ""),
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": None,
                    "finish_reason": step.finish_reason,
                }
            ],
            "usage": {
                "prompt_tokens": usage.prompt,
                "completion_tokens": usage.completion,
                "total_tokens": usage.prompt + usage.completion,
                "prompt_tokens_details": {"cached_tokens": usage.cached},
            },
        }


def counted(request: ModelRequest, step: Step) -> Totals:
    """The tokens of one completion: as scripted, else a quarter of the characters."""
    prompt = len(json.dumps(request.json["messages"], ensure_ascii=False)) // 4
    completion = len(json.dumps(step.message, ensure_ascii=False)) // 4
    prompt, completion = step.usage or (prompt, completion)
    return Totals(1, prompt, completion, step.cached)
