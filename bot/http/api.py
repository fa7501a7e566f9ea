"""Serve the HTTP API: /api/chat, /api/rag/rewrite, /api/rag/ask and /api/research/query."""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Body, Depends, Header, HTTPException, Response
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPBearer
from fastapi.sse import format_sse_event
from pydantic import AfterValidator, BaseModel, Field

from agent import size_limits
from agent.documents.answer import Answer
from agent.documents.passages import MAX_QUESTION_CHARS
from agent.documents.quotes import Quote, Quotes, Snippet
from agent.documents.refine import Refinement, refine_question
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox, ToolResult
from agent.i18n import set_app_language, set_language
from agent.markdown import strip_invisible
from agent.sommelier.service import Answerer
from agent.tables import StrictModel
from agent.turn import (
    Reply,
    ReplyFunction,
    StoredMessage,
    TurnOutcome,
    clean_and_flag,
    get_deps,
)
from bot import look_ups
from bot.http.server import UNAVAILABLE
from bot.resources import Resources
from bot.runner import TurnRunner
from bot.turn import Question, Turn, TurnKind

SESSION: Final = "api"
"""Stands for the API in traces, where others have a chat."""
MAX_HISTORY: Final = 50
"""How many earlier messages a client may send."""
INTERNAL_FIELDS: Final = {"chunks", "retry_count", "error_types", "prompt"}
"""The fields of an answer that are not sent to clients."""


def clean_text(text: str) -> str:
    """Return a text without invisible characters. Raise a ValueError if nothing is left of it."""
    visible_text = strip_invisible(text).strip()
    if not visible_text:
        raise ValueError("must contain visible text")
    return visible_text


TEXT_CLEANER: Final = AfterValidator(clean_text)
MessageText = Annotated[str, Field(max_length=size_limits.MESSAGE_CHARS), TEXT_CLEANER]
QuestionText = Annotated[
    str, Body(embed=True, max_length=MAX_QUESTION_CHARS), TEXT_CLEANER
]


class ChatMessage(StrictModel):
    """An earlier message of the conversation."""

    role: Literal["user", "assistant"]
    content: MessageText


class ChatResponse(BaseModel):
    """The sommelier's answer."""

    answer: str
    """The answer in Markdown."""
    wine_ids: tuple[str, ...]
    """The wines that the answer recommends."""
    note: str
    """Why no model answered, or a message about the budget, or ""."""
    outcome: TurnOutcome


async def set_request_language(
    accept_language: Annotated[str | None, Header()] = None,
) -> None:
    """Set the language of the answer from the request."""
    set_language(accept_language)
    # The header may be "de-AT;q=1,de;q=0.9,en;q=0.5". The language of the app is then "de-AT".
    first, _, _ = (accept_language or "").partition(",")
    language, _, _ = first.partition(";")
    set_app_language(language)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The endpoints below /api.

    `bot.http.server.build_http_app` checks the token before a request reaches them.
    """

    resources: Resources
    runner: TurnRunner
    answerer: Answerer
    client_hash: str
    """A hash of the token, which stands for the client in traces."""

    def build_router(self) -> APIRouter:
        """Return the routes of the API."""
        # HTTPBearer only documents the token in the OpenAPI schema.
        dependencies = [
            Depends(HTTPBearer(auto_error=False)),
            Depends(set_request_language),
        ]
        router = APIRouter(prefix="/api", dependencies=dependencies)
        router.post("/chat")(self.chat)
        router.post("/rag/rewrite")(self.rewrite)
        router.post("/rag/ask", response_model_exclude=INTERNAL_FIELDS)(self.ask)
        router.post("/research/query", response_class=Response)(self.query)
        return router

    async def chat(
        self,
        message: Annotated[MessageText, Body()],
        history: Annotated[list[ChatMessage], Body(max_length=MAX_HISTORY)] = [],  # noqa: B006
    ) -> ChatResponse:
        """Ask the sommelier. `history` is the conversation so far, the oldest message first."""
        earlier_messages = [
            StoredMessage(earlier.role, earlier.content) for earlier in history
        ]

        async def make_reply(run: Run) -> Reply:
            # Nothing is stored of a user here. Without a person, the sommelier reads the safety
            # concerns from the history.
            deps = replace(get_deps(run), person=None)
            run = replace(run, deps=deps)
            return await self.answerer.answer(message, run, history=earlier_messages)

        reply = await self._run_turn("chat", message, make_reply)
        if reply.outcome == "failed":
            raise HTTPException(503, UNAVAILABLE)
        return ChatResponse(
            answer=reply.text,
            wine_ids=reply.wine_ids,
            note=" ".join(reply.notes),
            outcome=reply.outcome,
        )

    async def rewrite(self, question: QuestionText) -> Refinement:
        """Refine a question for the search, without answering it."""
        # The setting is True, False or None. None means "only on request", and this is a request.
        is_enabled = self.resources.refinement is not False

        async def make_reply(run: Run) -> Reply:
            text = clean_and_flag(question, run.span)
            refinement = await refine_question(text, run=run, enabled=is_enabled)
            return Reply(text=refinement.refined, structured_answer=refinement)

        reply = await self._run_turn("rewrite", question, make_reply)
        if reply.outcome == "help":
            # The safety rules answered instead of the model.
            return Refinement(question, question, fallback_reason="refused")
        refinement: Refinement = _get_answer(reply)
        return refinement

    async def ask(
        self,
        question: QuestionText,
        refine_prompt: Annotated[bool | None, Body()] = None,
    ) -> Answer:
        """Answer a question from the documents, with a source for every statement.

        With `refine_prompt`, the documents are also searched for the refined question. The setting
        of the server decides if it is null.
        """

        async def make_reply(run: Run) -> Reply:
            return await look_ups.run_ask(
                question, run, resources=self.resources, refine=refine_prompt
            )

        reply = await self._run_turn("ask", question, make_reply)
        if reply.outcome == "help":
            return Answer(
                question=question,
                text=reply.text,
                footnoted=reply.text,
                refinement=Refinement(question, question, fallback_reason="refused"),
                outcome="help",
            )
        answer: Answer = _get_answer(reply)
        return replace(answer, note=" ".join(reply.notes), outcome=reply.outcome)

    async def query(self, query: QuestionText) -> Response:
        """Quote passages of the documents word for word.

        The whole answer of the model is verified first. Then the results are sent as server-sent
        events: a `result` for each passage, and `done` at the end.
        """

        async def make_reply(run: Run) -> Reply:
            return await look_ups.run_quotes(query, run, resources=self.resources)

        reply = await self._run_turn("quotes", query, make_reply)
        quotes: tuple[Quote, ...] = ()
        summary = reply.text
        if reply.outcome != "help":
            result: Quotes = _get_answer(reply)
            quotes = result.quotes
            summary = result.summary
        events = _list_events(quotes)
        done = {
            "resultCount": len(quotes),
            "summary": " ".join([summary, *reply.notes]),
            "processingTimeMs": round(reply.seconds * 1000),
        }
        events.append(("done", done))
        return StreamingResponse(stream_events(events), media_type="text/event-stream")

    async def call_tool(self, tools: Toolbox, call: ToolCall) -> ToolResult:
        """Return the result of an external agent's tool call, or the reply of the safety rules."""
        # It stays None if the safety rules reply instead of the tool.
        result: ToolResult | None = None

        async def make_reply(run: Run) -> Reply:
            nonlocal result
            result = await tools.call(call, run)
            return Reply(text=result.text)

        # The turn is of the kind "find", so that it has the safety rules of look-ups.
        reply = await self._run_turn("find", call.arguments, make_reply)
        if result is None:
            return ToolResult(reply.text, error_type=reply.outcome)
        return result

    async def _run_turn(
        self, kind: TurnKind, text: str, make_reply: ReplyFunction
    ) -> Reply:
        """Run a turn that belongs to no user and to no conversation.

        Only the budget of all users together applies. The trace of the turn and its numbers are
        stored, but no history.
        """
        turn = Turn(trace_session=SESSION, trace_user=self.client_hash)
        question = Question(text=text, kind=kind)
        return await self.runner.run_and_commit(turn, question, make_reply)


def _list_events(quotes: Sequence[Quote]) -> list[tuple[str, Any]]:
    """Return an event `result` for each quote, with the fields that clients get."""
    names = set(Snippet.model_fields)
    events: list[tuple[str, Any]] = []
    for quote in quotes:
        fields = quote.model_dump(by_alias=True, include=names)
        events.append(("result", fields))
    return events


async def stream_events(events: Iterable[tuple[str, Any]]) -> AsyncIterator[bytes]:
    """Yield events, each with its name and data, so that each is sent by itself."""
    for name, data in events:
        # `json.dumps` escapes non-ASCII characters, some of which are line endings.
        yield format_sse_event(event=name, data_str=json.dumps(data))


def _get_answer(reply: Reply) -> Any:
    """Return the structured answer of a reply. If it has none, answer 503."""
    if reply.structured_answer is not None:
        return reply.structured_answer
    if reply.outcome == "failed":
        raise HTTPException(503, UNAVAILABLE)
    raise HTTPException(503, reply.text)
