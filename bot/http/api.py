"""The HTTP API: the sommelier, documents, quotes, places, for those who hold the token.

Bad input is told field by field (422), never as a failure; a failure is one sentence (503). What
was asked is never logged.
"""

import asyncio
import hmac
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from json import JSONDecodeError
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

from agent.deps import deps_of
from agent.documents.answer import Answer, answer_question
from agent.documents.quotes import Quotes, find_quotes
from agent.documents.refine import Refinement, refine_question, refinement_wanted
from agent.engine.run import Run, ShowDraft
from agent.i18n import speak
from agent.markdown import visible
from agent.places.find import Places, find_places
from agent.places.queries import Queries
from agent.sommelier.service import Answerer
from agent.turn import Reply, Work, guard_input
from bot.budgets import NO_BUDGET
from bot.http.guards import (
    BODY_SECONDS,
    MAX_BODY_BYTES,
    ClosingResponse,
    Refused,
    WrongTokens,
    bounded_body,
)
from bot.http.schemas import (
    AskRequest,
    AskResponse,
    ChatRequest,
    ChatResponse,
    DocumentResponse,
    DocumentsResponse,
    DoneEvent,
    DraftEvent,
    FieldProblem,
    FindRequest,
    PassageResponse,
    PlacesDocument,
    Problem,
    QueryRequest,
    ResultEvent,
    RewriteRequest,
    RewriteResponse,
    SearchRequest,
    SearchResponse,
)
from bot.resources import Resources
from bot.telegram.drafts import DRAFT_SECONDS
from bot.turn import Kind, Question, Turns

log = logging.getLogger(__name__)

SHOWN_PROBLEMS: Final = 10
LONGEST_FIELD: Final = 100
UNAVAILABLE: Final = "the question could not be worked on, ask again later"
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
    429: "Too many wrong tokens came from this address.",
    503: "The question could not be worked on.",
}
PASSAGES: Final = (
    "Server-sent events: `result` (a ResultEvent) for each passage, then `done` (a DoneEvent)."
)
DRAFTS: Final = (
    "The answer. Who accepts text/event-stream gets server-sent events: `draft` (a DraftEvent) as "
    "it forms, each in place of the one before and only of what is grounded, then `done` (a "
    "ChatResponse) or `error` (a Problem). Closing the connection ends the work on it."
)
SESSION: Final = "api"
EVENT_STREAM: Final = "text/event-stream"
STILL_THERE: Final = ": still there\n\n"
"""A comment, which keeps proxies from giving up a connection on which nothing comes."""


Found = Answer | Quotes | Refinement | Places
LookUp = Callable[..., Awaitable[Found]]
"""A look-up for a question, which takes a `run`."""
InCrisis = Callable[[str, str], Found]


class TurnFailed(Exception):
    """A call ended without an answer; why is in its trace and in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """What is served below /api; `user` stands for the holder of `token` in traces."""

    resources: Resources
    turns: Turns
    answerer: Answerer
    token: SecretStr
    user: str
    max_body_bytes: int = MAX_BODY_BYTES
    body_seconds: float = BODY_SECONDS
    wrong: WrongTokens = field(default_factory=WrongTokens)

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
        api.post(
            "/chat",
            summary="Ask the sommelier",
            response_model=ChatResponse,
            responses=_streams(DRAFTS),
        )(self.chat)
        api.post("/rag/rewrite", summary="Rewrite a question for the search")(self.rewrite)
        api.post("/rag/ask", summary="Answer a question from the documents")(self.ask)
        api.post(
            "/research/query",
            summary="Find passages, word for word",
            response_class=Response,
            responses=_streams(PASSAGES),
        )(self.query)
        api.post("/places/find", summary="Find wine shops, bars, wineries …")(self.find)
        api.get("/documents", summary="List the documents")(self.list_documents)
        api.post("/documents/search", summary="Find passages without a model")(
            self.search_documents
        )
        api.openapi()["components"]["schemas"] |= _schemas(DraftEvent, ResultEvent, DoneEvent)
        return [Mount("/api", api)]

    async def chat(self, asked: ChatRequest, request: Request) -> ChatResponse | Response:
        """The sommelier's answer, if it is wanted so with its drafts."""
        if EVENT_STREAM not in request.headers.get("accept", ""):
            return await self._chat(asked)
        drafts = deque[Callable[[], str]](maxlen=1)
        forming = forming_events(drafts, partial(self._chat, asked, drafts.append))
        return StreamingResponse(forming, headers=STREAM_HEADERS, media_type=EVENT_STREAM)

    async def _chat(self, asked: ChatRequest, show: ShowDraft | None = None) -> ChatResponse:
        history = [message.model_dump() for message in asked.history]

        async def work(run: Run) -> Reply:
            # What they told of themselves before is found in the whole conversation.
            deps = replace(deps_of(run), person=None)
            run = replace(run, history=history, deps=deps, show=show)
            return await self.answerer.answer(asked.message, run)

        reply = await self._turn("chat", asked.message, work)
        if reply.outcome == "failed":
            raise TurnFailed
        return ChatResponse.of(reply)

    async def rewrite(self, asked: RewriteRequest) -> RewriteResponse:
        """Return the question rewritten for the search."""
        look_up = partial(refine_question, enabled=self.resources.refinement is not False)
        reply = await self._look_up("rewrite", asked.question, look_up, _not_refined)
        return RewriteResponse.of(reply.answer)

    async def ask(self, asked: AskRequest) -> AskResponse:
        """Return an answer with its citations."""
        documents, server = self.resources.documents, self.resources.refinement
        refine = refinement_wanted(server, asked.refine_prompt)
        look_up = partial(answer_question, documents=documents, refine=refine)
        reply = await self._look_up("ask", asked.question, look_up, Answer.of_help)
        note = " ".join(reply.notes)
        return AskResponse.of(replace(reply.answer, note=note, outcome=reply.outcome))

    async def query(self, asked: QueryRequest) -> Response:
        """Return passages as server-sent events, which begin when all are checked."""
        documents, cache = self.resources.documents, self.resources.cache
        look_up = partial(find_quotes, documents=documents, cache=cache)
        reply = await self._look_up("quotes", asked.query, look_up, Quotes.of_help)
        found = replace(reply.answer, note=" ".join(reply.notes))
        return StreamingResponse(
            events(found, reply.seconds), headers=STREAM_HEADERS, media_type=EVENT_STREAM
        )

    async def find(self, asked: FindRequest) -> PlacesDocument:
        """Return ten queries, their results, and links to search with."""

        async def look_up(_: str, *, run: Run) -> Places:
            search = self.resources.search
            return await find_places(asked.category, asked.place, run=run, search=search)

        def in_crisis(_: str, help_: str) -> Places:
            return Places(Queries(asked.category, asked.place, ()), note=help_)

        reply = await self._look_up("find", f"{asked.category} {asked.place}", look_up, in_crisis)
        notes = " ".join(dict.fromkeys(filter(None, (reply.answer.note, *reply.notes))))
        return PlacesDocument.of(replace(reply.answer, note=notes))

    async def list_documents(self) -> DocumentsResponse:
        """Return every document, by path."""
        stored = await self.resources.documents.documents()
        return DocumentsResponse(documents=list(map(DocumentResponse.of, stored)))

    async def search_documents(self, asked: SearchRequest) -> SearchResponse:
        """Return the passages that fit best, as they are."""
        found = await self.resources.documents.search([asked.query], asked.limit)
        return SearchResponse(passages=list(map(PassageResponse.of, found)))

    async def _look_up(self, kind: Kind, text: str, look_up: LookUp, in_crisis: InCrisis) -> Reply:
        """Run a turn that looks something up.

        In a crisis the answer is what `in_crisis` makes of the question and the help text.

        Raises:
            TurnFailed: there is no answer.
        """

        async def work(run: Run) -> Reply:
            return reply_of(await look_up(guard_input(text, run.span), run=run))

        reply = await self._turn(kind, text, work)
        if reply.outcome == "care":
            return replace(reply, answer=in_crisis(text, reply.text))
        if reply.answer is None:
            raise TurnFailed
        return reply

    async def _turn(self, kind: Kind, text: str, work: Work) -> Reply:
        """A turn of nobody: everyone's budget holds, nothing is delivered or remembered."""
        turn_id = -1 - secrets.randbits(62)
        question = Question(id=turn_id, text=text, kind=kind, session=SESSION, user=self.user)
        budgets = self.turns.budgets and replace(self.turns.budgets, person=NO_BUDGET)
        budgets = budgets if budgets and budgets.everyone.is_set else None
        turns = replace(self.turns, sender=None, messages=None, budgets=budgets)
        return await turns.turn(question, work)

    def _guarded(self) -> type[APIRoute]:
        """Routes that check the token before they read the body, and the body before its JSON.

        FastAPI reads a body before anything else, however long that takes.
        """
        api = self

        class GuardedRoute(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handle = super().get_route_handler()

                async def guarded(request: Request) -> Response:
                    speak(request.headers.get("accept-language"))
                    return await api._refusal(request) or await api._answer(request, handle)

                return guarded

        return GuardedRoute

    async def _refusal(self, request: Request) -> Response | None:
        """401 without a bearer token, 403 with a wrong one, before anything is read.

        After too many wrong ones no token of the address is looked at for a while: 429.
        """
        if seconds := self.wrong.wait(request):
            return _closing(429, "too many wrong tokens", {"retry-after": str(seconds)})
        given = await BEARER(request)
        if given is None:
            return _closing(401, "unauthorized", {"www-authenticate": "Bearer"})
        expected = self.token.get_secret_value().encode()
        if not hmac.compare_digest(given.credentials.encode("latin-1"), expected):
            self.wrong.add(request)
            return _closing(403, "forbidden")
        return None

    async def _answer(
        self, request: Request, handle: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        try:
            if request.method == "GET":
                return await handle(request)
            body = await bounded_body(request, self.max_body_bytes, self.body_seconds)
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


def _not_refined(question: str, help_: str) -> Refinement:
    """Return the question as it is: a rewriter answers nobody."""
    return Refinement(question, question, fallback_reason="refused")


def reply_of(found: Found) -> Reply:
    """Return the reply of a turn that looked something up."""
    if isinstance(found, Refinement):
        return Reply(text=found.refined, answer=found)
    if isinstance(found, Places):
        return found.reply(found.queries.as_text)
    if isinstance(found, Answer):
        return found.reply(found.text)
    return found.reply("\n".join(quote.content for quote in found.quotes) or found.summary)


async def forming_events(
    drafts: Sequence[Callable[[], str]], answer: Callable[[], Coroutine[Any, Any, BaseModel]]
) -> AsyncIterator[str]:
    """An answer as server-sent events: a `draft` now and then, then `done` or `error`.

    Of `drafts` the last makes the newest. Who goes away ends the work on the answer.
    """
    shown, answering = "", asyncio.create_task(answer())
    try:
        while not (await asyncio.wait([answering], timeout=DRAFT_SECONDS))[0]:
            draft = drafts[-1]() if drafts else ""
            is_new, shown = draft not in ("", shown), draft or shown
            yield event("draft", DraftEvent(text=draft)) if is_new else STILL_THERE
        yield event("done", answering.result())
    except Exception as error:
        log.error("A streamed answer failed with %s", type(error).__name__)  # noqa: TRY400
        yield event("error", Problem(error=UNAVAILABLE))
    finally:
        answering.cancel()


async def events(found: Quotes, seconds: float) -> AsyncIterator[str]:
    """Yield quotes as server-sent events: one `result` for each, then `done`."""
    for quote in found.quotes:
        yield event("result", ResultEvent.of(quote))
    done = DoneEvent(
        result_count=len(found.quotes),
        summary=" ".join(filter(None, [found.summary, found.note])),
        processing_time_ms=round(seconds * 1000),
    )
    yield event("done", done)


def event(name: str, data: BaseModel) -> str:
    """One server-sent event.

    Its data is one line for readers too who take more than a line feed for the end of a line.
    """
    line = visible(data.model_dump_json(by_alias=True))
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


def _streams(description: str) -> dict[int | str, dict[str, Any]]:
    """What the document says of a response that comes as events, or may."""
    content = {EVENT_STREAM: {"schema": {"type": "string"}}}
    return {200: {"description": description, "content": content}}


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
    return Response(visible(model.model_dump_json()), status, headers, "application/json")


def _closing(status: int, error: str, headers: Mapping[str, str] | None = None) -> Response:
    content = Problem(error=error).model_dump_json()
    return ClosingResponse(content, status, "application/json", headers)
