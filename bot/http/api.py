"""The HTTP API: the sommelier, answers from documents and quotes, for those who have the token."""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, HTTPException, Response
from fastapi.security import HTTPBearer
from fastapi.sse import EventSourceResponse, format_sse_event
from pydantic_core import to_json

from agent.documents.answer import Answer, answer_question
from agent.documents.quotes import Quotes, Snippet, find_quotes
from agent.documents.refine import Refinement, refine_question, refinement_wanted
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox, ToolResult
from agent.i18n import set_language
from agent.markdown import visible
from agent.sommelier.service import Answerer
from agent.turn import AnswerFunction, Reply, deps_of, guard_input
from bot.http.schemas import (
    AskRequest,
    AskResponse,
    ChatRequest,
    ChatResponse,
    QueryRequest,
    RewriteRequest,
)
from bot.http.server import UNAVAILABLE, log_type
from bot.question import Kind, Question
from bot.resources import Resources
from bot.telegram.drafts import DRAFT_SECONDS
from bot.turn import TurnRunner

SESSION: Final = "api"
STREAM_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
STILL_THERE: Final = format_sse_event(comment="still there")
"""Keeps proxies from giving up a connection on which nothing comes."""
ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    401: {"description": "There is no bearer token, or a wrong one."},
    503: {"description": "The question could not be worked on."},
}
EVENTS: Final = {"text/event-stream": {"schema": {"type": "string"}}}
CHAT_EVENTS: Final = (
    "The answer. With `Accept: text/event-stream` it comes as events: `draft` ({text}), each in "
    "place of the one before and only of what is grounded, then `done` (a ChatResponse) or `error` "
    "({detail}). Closing the connection ends the work on it."
)
QUOTE_EVENTS: Final = (
    "Events: `result` (a Snippet) for each passage, then `done` ({resultCount, summary, "
    "processingTimeMs}); `summary` is in the model's words if one was asked."
)

Found = Answer | Quotes | Refinement


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Everything below /api; `user` stands for the holder of the token in traces."""

    resources: Resources
    turns: TurnRunner
    answerer: Answerer
    user: str

    def router(self) -> APIRouter:
        """Return the routes that `bot.http.server.http_app` serves."""
        router = APIRouter(
            prefix="/api",
            dependencies=[Depends(HTTPBearer(auto_error=False)), Depends(set_request_language)],
            responses=ERRORS,
        )
        chat_events = {"description": CHAT_EVENTS, "content": EVENTS}
        quote_events = {"description": QUOTE_EVENTS, "content": EVENTS}
        router.post("/chat", response_model=ChatResponse, responses={200: chat_events})(self.chat)
        router.post("/rag/rewrite")(self.rewrite)
        router.post("/rag/ask")(self.ask)
        quotes = router.post(
            "/research/query", response_class=Response, responses={200: quote_events}
        )
        quotes(self.query)
        return router

    async def chat(
        self, asked: ChatRequest, accept: Annotated[str, Header()] = ""
    ) -> ChatResponse | EventSourceResponse:
        """Ask the sommelier."""
        if "text/event-stream" in accept:
            return EventSourceResponse(self._chat_events(asked), headers=STREAM_HEADERS)
        return await self._chat(asked)

    async def _chat(
        self, asked: ChatRequest, show: Callable[[Callable[[], str]], None] | None = None
    ) -> ChatResponse:
        history = [message.model_dump() for message in asked.history]

        async def work(run: Run) -> Reply:
            # Concerns that the user stated before are found in the whole conversation.
            deps = replace(deps_of(run), person=None)
            run = replace(run, history=history, deps=deps, show_draft=show)
            return await self.answerer.answer(asked.message, run)

        reply = await self._turn("chat", asked.message, work)
        if reply.outcome == "failed":
            raise HTTPException(503, UNAVAILABLE)
        return ChatResponse.of(reply)

    async def _chat_events(self, asked: ChatRequest) -> AsyncIterator[bytes]:
        """Yield drafts as they form, then `done` or `error`. Closing ends the work."""
        drafts, shown = deque[Callable[[], str]](maxlen=1), ""
        answering = asyncio.create_task(self._chat(asked, drafts.append))
        try:
            while not (await asyncio.wait([answering], timeout=DRAFT_SECONDS))[0]:
                draft = drafts[-1]() if drafts else ""
                is_new, shown = draft not in ("", shown), draft or shown
                yield event("draft", {"text": draft}) if is_new else STILL_THERE
            yield event("done", answering.result())
        except Exception as error:
            log_type("/api/chat", error)
            yield event("error", {"detail": UNAVAILABLE})
        finally:
            answering.cancel()

    async def rewrite(self, asked: RewriteRequest) -> Refinement:
        """Rewrite a question for the search; nothing is answered."""
        enabled = self.resources.refinement is not False

        async def look_up(run: Run) -> Refinement:
            question = guard_input(asked.question, run.span)
            return await refine_question(question, run=run, enabled=enabled)

        def in_crisis(_: str) -> Refinement:
            return Refinement(asked.question, asked.question, fallback_reason="refused")

        reply = await self._look_up("rewrite", asked.question, look_up, in_crisis)
        found: Refinement = reply.answer
        return found

    async def ask(self, asked: AskRequest) -> AskResponse:
        """Answer a question from the documents, each statement with its source."""
        refine = refinement_wanted(self.resources.refinement, asked.refine_prompt)

        async def look_up(run: Run) -> Answer:
            question = guard_input(asked.question, run.span)
            documents = self.resources.documents
            return await answer_question(question, documents=documents, refine=refine, run=run)

        in_crisis = partial(Answer.crisis_help, asked.question)
        reply = await self._look_up("ask", asked.question, look_up, in_crisis)
        note = " ".join(reply.notes)
        return AskResponse.of(replace(reply.answer, note=note, outcome=reply.outcome))

    async def query(self, asked: QueryRequest) -> EventSourceResponse:
        """Find passages, word for word; the events begin when all passages are checked."""

        async def look_up(run: Run) -> Quotes:
            query = guard_input(asked.query, run.span)
            documents, cache = self.resources.documents, self.resources.cache
            return await find_quotes(query, documents=documents, cache=cache, run=run)

        in_crisis = partial(Quotes.crisis_help, asked.query)
        reply = await self._look_up("quotes", asked.query, look_up, in_crisis)
        found = replace(reply.answer, note=" ".join(reply.notes))
        return EventSourceResponse(quote_events(found, reply.seconds), headers=STREAM_HEADERS)

    async def call_tool(self, tools: Toolbox, call: ToolCall) -> ToolResult:
        """Run a call of another program's agent as a turn; in a crisis the result is help."""
        results = list[ToolResult]()

        async def work(run: Run) -> Reply:
            results.append(await tools.call(call, run))
            return Reply(text=results[0].text)

        reply = await self._turn("find", call.arguments, work)
        return results[0] if results else ToolResult(reply.text, error_type=reply.outcome)

    async def _look_up(
        self,
        kind: Kind,
        text: str,
        look_up: Callable[[Run], Awaitable[Found]],
        in_crisis: Callable[[str], Found],
    ) -> Reply:
        """Run a turn that looks something up.

        In a crisis the answer is what `in_crisis` makes of the help text.

        Raises:
            HTTPException: there is no answer.
        """

        async def work(run: Run) -> Reply:
            return reply_of(await look_up(run))

        reply = await self._turn(kind, text, work)
        if reply.outcome == "care":
            return replace(reply, answer=in_crisis(reply.text))
        if reply.answer is None:
            raise HTTPException(503, UNAVAILABLE)
        return reply

    async def _turn(self, kind: Kind, text: str, work: AnswerFunction) -> Reply:
        """Run a turn of no user: the budget of all holds, nothing is delivered."""
        turn_id = -1 - secrets.randbits(62)
        question = Question(id=turn_id, text=text, kind=kind, session=SESSION, user=self.user)
        return await self.turns.run_turn(question, work)


async def set_request_language(accept_language: Annotated[str | None, Header()] = None) -> None:
    """Answer in the language that the request accepts."""
    set_language(accept_language)


def reply_of(found: Found) -> Reply:
    """Return the reply of a turn that looked something up."""
    if isinstance(found, Refinement):
        return Reply(text=found.refined, answer=found)
    if isinstance(found, Answer):
        return found.reply(found.text)
    return found.reply("\n".join(quote.content for quote in found.quotes) or found.summary)


def quote_events(found: Quotes, seconds: float) -> Iterator[bytes]:
    """Yield one `result` for each quote, then `done`."""
    for quote in found.quotes:
        yield event("result", Snippet.model_validate(quote, from_attributes=True))
    done = {
        "resultCount": len(found.quotes),
        "summary": " ".join(filter(None, [found.summary, found.note])),
        "processingTimeMs": round(seconds * 1000),
    }
    yield event("done", done)


def event(name: str, data: object) -> bytes:
    """Return a server-sent event whose data is one line for any reader."""
    return format_sse_event(event=name, data_str=visible(to_json(data, by_alias=True).decode()))
