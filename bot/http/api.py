"""The HTTP API: questions, rewritten questions and quotes, for those who hold the token.

Bad input is told field by field (422), never as a failure; a failure is one sentence (503). What
was asked is never logged.
"""

import hmac
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Final, TypeVar

from pydantic import BaseModel, SecretStr, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agent.desk import ResearchDesk
from agent.documents.quotes import Quotes
from agent.engine.span import Tracer
from agent.turn_records import TurnRecord
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
from bot.http.schema import openapi_document
from bot.http.turns import ApiTurns
from bot.turn import unrecorded

Asked = TypeVar("Asked", bound=BaseModel)

log = logging.getLogger(__name__)

SHOWN_PROBLEMS: Final = 10
LONGEST_FIELD: Final = 100
UNAVAILABLE: Final = "the question could not be worked on, ask again later"
LINE_ENDS: Final = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
STREAM_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """What is served below /api; `user` stands for the holder of `token` in traces.

    Of `budgets` that of everyone holds; `record` keeps what a call took.
    """

    desk: ResearchDesk
    tracer: Tracer
    token: SecretStr
    user: str
    budgets: Budgets | None = None
    record: Callable[[TurnRecord], Awaitable[None]] = unrecorded
    max_body_bytes: int = MAX_BODY_BYTES
    body_seconds: float = BODY_SECONDS

    def routes(self) -> list[Route]:
        """What `bot.http.server.http_app` is to serve."""
        return [
            Route("/api/openapi.json", show_document),
            self._route("/api/rag/rewrite", RewriteRequest, self.rewrite),
            self._route("/api/rag/ask", AskRequest, self.ask),
            self._route("/api/research/query", QueryRequest, self.query),
        ]

    async def rewrite(self, asked: RewriteRequest) -> Response:
        """The question in words for the search."""
        async with self._turns.open(asked.question) as turn:
            refinement = await turn.desk.refine(asked.question, ledger=turn.ledger, span=turn.span)
            turn.span.update(output=refinement.refined)
            turn.end("answered")
            return _json(RewriteResponse.of(turn.told_of(refinement)))

    async def ask(self, asked: AskRequest) -> Response:
        """An answer with its citations."""
        async with self._turns.open(asked.question) as turn:
            answer = await turn.desk.ask(
                asked.question, refine=asked.refine_prompt, ledger=turn.ledger, span=turn.span
            )
            turn.end(answer.outcome, answer.retry_count, answer.error_types)
            answer = turn.told(answer)
            turn.span.update(output=answer.text)
            return _json(AskResponse.of(answer))

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
            media_type="text/event-stream",
            headers=STREAM_HEADERS,
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

    def _route(
        self, path: str, model: type[Asked], answer: Callable[[Asked], Awaitable[Response]]
    ) -> Route:
        """POST `path`: the token is checked, then the body, then it is answered."""

        async def endpoint(request: Request) -> Response:
            if (refusal := self._refusal(request)) is not None:
                return refusal
            try:
                body = await json_body(request, self.max_body_bytes, self.body_seconds)
                asked = model.model_validate_json(body, strict=True)
            except Refused as refused:
                return _closing(refused.status, str(refused))
            except ValidationError as error:
                return _json(problem(error), 422)
            try:
                return await answer(asked)
            except Exception as error:
                # The type alone: the text of a database error holds what was asked.
                log.error("%s failed with %s", path, type(error).__name__)  # noqa: TRY400
                return _json(Problem(error=UNAVAILABLE), 503)

        return Route(path, endpoint, methods=["POST"])

    def _refusal(self, request: Request) -> Response | None:
        """401 without a bearer token, 403 with a wrong one, before anything is read."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given.strip():
            return _closing(401, "unauthorized", {"www-authenticate": "Bearer"})
        expected = self.token.get_secret_value().encode()
        if not hmac.compare_digest(given.strip().encode("latin-1"), expected):
            return _closing(403, "forbidden")
        return None


async def show_document(_: Request) -> Response:
    """How the API is to be used, as an OpenAPI document."""
    return JSONResponse(openapi_document())


async def events(found: Quotes, seconds: float) -> AsyncIterator[str]:
    """Quotes as server-sent events: one `result` each, then `done`."""
    for quote in found.quotes:
        yield event("result", ResultEvent.of(quote))
    yield event("done", DoneEvent.of(found, seconds))


def event(name: str, data: BaseModel) -> str:
    """One server-sent event.

    Its data is one line for readers too who take more than a line feed for the end of a line.
    """
    line = data.model_dump_json(by_alias=True).translate(LINE_ENDS)
    return f"event: {name}\ndata: {line}\n\n"


def problem(error: ValidationError) -> Problem:
    """What is wrong with a body, field by field."""
    issues = error.errors(include_url=False, include_context=False, include_input=False)
    return Problem(
        error="the body is not what this address takes",
        fields=[
            FieldProblem(field=field_name(issue["loc"]), message=issue["msg"])
            for issue in issues[:SHOWN_PROBLEMS]
        ],
    )


def field_name(location: tuple[int | str, ...]) -> str:
    """The name of a field, `body` for the body as a whole."""
    return ".".join(map(str, location))[:LONGEST_FIELD] or "body"


def _json(model: BaseModel, status: int = 200) -> Response:
    return Response(model.model_dump_json(by_alias=True), status, media_type="application/json")


def _closing(status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    content = Problem(error=error).model_dump_json()
    return ClosingResponse(content, status, "application/json", headers)
