"""The HTTP API: questions, rewritten questions and quotes, for those who hold the token.

Bad input is told field by field (422), never as a failure; a failure is one sentence (503). What
was asked is never logged.
"""

import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from json import JSONDecodeError
from time import monotonic
from typing import Any, Final

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi.telemetry import TelemetryConfig
from pydantic import BaseModel, SecretStr
from pydantic.json_schema import models_json_schema
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.routing import Mount

from agent.desk import ResearchDesk
from agent.documents.quotes import Quotes
from agent.repositories import TurnRecord
from agent.tracing.recorder import Recorder
from bot.budgets import Budgets
from bot.http.body import BODY_SECONDS, MAX_BODY_BYTES, ClosingResponse, Refused, json_body
from bot.http.models import (
    AskRequest,
    AskResponse,
    DoneEvent,
    FieldProblem,
    Problem,
    QueryRequest,
    ResultEvent,
    RewriteRequest,
    RewriteResponse,
)
from bot.http.turns import ApiTurns
from bot.turn import unrecorded

log = logging.getLogger(__name__)

SHOWN_PROBLEMS: Final = 10
LONGEST_FIELD: Final = 100
UNAVAILABLE: Final = "the question could not be worked on, ask again later"
LINE_ENDS: Final = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
STREAM_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
BEARER: Final = HTTPBearer(auto_error=False, scheme_name="token")

NO_TELEMETRY: Final[TelemetryConfig] = {"tracing": False, "metrics": False, "logs": False}
"""Calls are traced as turns; FastAPI's own records would hold what was asked."""

REFUSED: Final = {
    400: "The connection ended before the body did.",
    401: "There is no bearer token.",
    403: "The bearer token is wrong.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The content type is not application/json.",
    422: "A field is wrong; `fields` says which and why.",
    503: "The question could not be worked on.",
}
STREAM: Final = (
    "Server-sent events: `result` (a ResultEvent) for each passage, then `done` (a DoneEvent)."
)
EVENT_STREAM: Final = "text/event-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """What is served below /api; `user` stands for the holder of `token` in traces.

    Of `budgets` that of everyone holds; `record` keeps what a call took.
    """

    desk: ResearchDesk
    tracer: Recorder
    token: SecretStr
    user: str
    budgets: Budgets | None = None
    record: Callable[[TurnRecord], Awaitable[None]] = unrecorded
    max_body_bytes: int = MAX_BODY_BYTES
    body_seconds: float = BODY_SECONDS

    def routes(self) -> list[Mount]:
        """What `bot.http.server.http_app` is to serve."""
        api = FastAPI(
            title="Sommelier",
            version=version("sommelier"),
            docs_url=None,
            redoc_url=None,
            telemetry=NO_TELEMETRY,
            dependencies=[Depends(BEARER)],
            responses={
                status: {"description": why, "model": Problem} for status, why in REFUSED.items()
            },
            exception_handlers={HTTPException: _show_error},
        )
        api.router.route_class = self._guarded()
        api.post("/rag/rewrite", summary="Rewrite a question for the search")(self.rewrite)
        api.post("/rag/ask", summary="Answer a question from the documents")(self.ask)
        api.post(
            "/research/query",
            summary="Find passages, word for word",
            response_class=Response,
            responses={
                200: {
                    "description": STREAM,
                    "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
                }
            },
        )(self.query)
        api.openapi()["components"]["schemas"] |= _schemas(ResultEvent, DoneEvent)
        return [Mount("/api", api)]

    async def rewrite(self, asked: RewriteRequest) -> RewriteResponse:
        """The question in words for the search."""
        async with self._turns.open(asked.question) as turn:
            refinement = await turn.desk.refine(asked.question, ledger=turn.ledger, span=turn.span)
            turn.span.update(output=refinement.refined)
            turn.end("answered")
            return RewriteResponse.of(turn.told_of(refinement))

    async def ask(self, asked: AskRequest) -> AskResponse:
        """An answer with its citations."""
        async with self._turns.open(asked.question) as turn:
            answer = await turn.desk.ask(
                asked.question, refine=asked.refine_prompt, ledger=turn.ledger, span=turn.span
            )
            turn.end(answer.outcome, answer.retry_count, answer.error_types)
            answer = turn.told(answer)
            turn.span.update(output=answer.text)
            return AskResponse.of(answer)

    async def query(self, asked: QueryRequest) -> Response:
        """Passages as server-sent events; they begin when all are checked."""
        started = monotonic()
        async with self._turns.open(asked.query) as turn:
            found = await turn.desk.quotes(asked.query, ledger=turn.ledger, span=turn.span)
            turn.end(found.outcome, found.retry_count, found.error_types)
            found = turn.told(found)
            turn.span.update(output=[quote.content for quote in found.quotes] or found.summary)
        return StreamingResponse(
            events(found, monotonic() - started),
            headers=STREAM_HEADERS,
            media_type=EVENT_STREAM,
        )

    @property
    def _turns(self) -> ApiTurns:
        return ApiTurns(
            desk=self.desk,
            tracer=self.tracer,
            user=self.user,
            budgets=self.budgets,
            record=self.record,
        )

    def _guarded(self) -> type[APIRoute]:
        """Routes that check the token before they read the body, and the body before its JSON.

        FastAPI reads a body before anything else, however long that takes.
        """
        api = self

        class GuardedRoute(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handle = super().get_route_handler()

                async def guarded(request: Request) -> Response:
                    return await api._refusal(request) or await api._answer(request, handle)

                return guarded

        return GuardedRoute

    async def _refusal(self, request: Request) -> Response | None:
        """401 without a bearer token, 403 with a wrong one, before anything is read."""
        given = await BEARER(request)
        if given is None:
            return _closing(401, "unauthorized", {"www-authenticate": "Bearer"})
        expected = self.token.get_secret_value().encode()
        if not hmac.compare_digest(given.credentials.encode("latin-1"), expected):
            return _closing(403, "forbidden")
        return None

    async def _answer(
        self, request: Request, handle: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        try:
            body = await json_body(request, self.max_body_bytes, self.body_seconds)
            return await handle(ReadRequest(request, body))
        except Refused as refused:
            return _closing(refused.status, str(refused))
        except RequestValidationError as error:
            return _json(problem(error), 422)
        except Exception as error:
            # The type alone: the text of a database error holds what was asked.
            log.error("%s failed with %s", request.url.path, type(error).__name__)  # noqa: TRY400
            return _json(Problem(error=UNAVAILABLE), 503)


class ReadRequest(Request):
    """A request whose body was read already."""

    def __init__(self, request: Request, body: bytes) -> None:
        super().__init__(request.scope)
        self._body = body

    async def json(self) -> Any:
        """Parse the body; raises JSONDecodeError for whatever is no JSON."""
        try:
            return from_json(self._body)
        except ValueError as error:
            raise JSONDecodeError(str(error), "", 0) from None


async def events(found: Quotes, seconds: float) -> AsyncIterator[str]:
    """Quotes as server-sent events: one `result` each, then `done`."""
    for quote in found.quotes:
        yield event("result", ResultEvent.of(quote))
    done = DoneEvent(
        result_count=len(found.quotes),
        summary=found.summary,
        processing_time_ms=round(seconds * 1000),
    )
    yield event("done", done)


def event(name: str, data: BaseModel) -> str:
    """One server-sent event.

    Its data is one line for readers too who take more than a line feed for the end of a line.
    """
    line = data.model_dump_json(by_alias=True).translate(LINE_ENDS)
    return f"event: {name}\ndata: {line}\n\n"


def problem(error: RequestValidationError) -> Problem:
    """What is wrong with a body, field by field."""
    return Problem(
        error="the body is not what this address takes",
        fields=[
            _field_problem(issue["loc"][1:], issue["msg"])
            for issue in error.errors()[:SHOWN_PROBLEMS]
        ],
    )


def _field_problem(place: tuple[int | str, ...], message: str) -> FieldProblem:
    names = [part for part in place if isinstance(part, str)]
    if not names:
        return FieldProblem(field="body", message="must be a JSON object")
    return FieldProblem(field=".".join(names)[:LONGEST_FIELD] or "body", message=message)


def _schemas(*models: type[BaseModel]) -> dict[str, Any]:
    """Schemas of what FastAPI does not find by itself."""
    _, found = models_json_schema(
        [(model, "serialization") for model in models],
        ref_template="#/components/schemas/{model}",
    )
    return dict(found["$defs"])


async def _show_error(_: Request, error: Exception) -> Response:
    """An address that does not exist, or not with this method."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for no other
    return _json(Problem(error=error.detail), error.status_code, error.headers)


def _json(model: BaseModel, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(model.model_dump_json(), status, headers, "application/json")


def _closing(status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    content = Problem(error=error).model_dump_json()
    return ClosingResponse(content, status, "application/json", headers)
