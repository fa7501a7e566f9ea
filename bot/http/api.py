"""The HTTP API: the sommelier, answers from documents and quotes, for those who have the token."""

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Body, Depends, Header, HTTPException, Response
from fastapi.security import HTTPBearer
from fastapi.sse import format_sse_event
from pydantic import AfterValidator, BaseModel, Field

from agent import size_limits
from agent.documents.answer import Answer
from agent.documents.passages import LONGEST_QUESTION
from agent.documents.quotes import Quotes, Snippet
from agent.documents.refine import Refinement, refine_question
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.engine.tools import Toolbox, ToolResult
from agent.i18n import set_language
from agent.markdown import strip_invisible
from agent.sommelier.service import Answerer
from agent.tables import StrictModel
from agent.turn import AnswerFunction, Outcome, Reply, get_deps, guard_input
from bot import look_ups
from bot.http.server import UNAVAILABLE
from bot.question import Kind, Question
from bot.resources import Resources
from bot.turn import TurnRunner

SESSION: Final = "api"
MAX_HISTORY: Final = 50
INTERNAL: Final = {"chunks", "retry_count", "error_types", "prompt"}
"""The fields of an answer that are not sent."""


def clean(text: str) -> str:
    """Return the text without invisible characters; refuse it if nothing is left."""
    cleaned = strip_invisible(text).strip()
    if not cleaned:
        raise ValueError("must hold some words")
    return cleaned


Message = Annotated[str, Field(max_length=size_limits.MESSAGE_CHARS), AfterValidator(clean)]
Query = Annotated[str, Body(embed=True, max_length=LONGEST_QUESTION), AfterValidator(clean)]


class ChatMessage(StrictModel):
    """An earlier message of the conversation."""

    role: Literal["user", "assistant"]
    content: Message


class ChatResponse(BaseModel):
    """The sommelier's answer, in Markdown, and the wines in it.

    `note` says why no model answered, or what is left of a budget.
    """

    answer: str
    wine_ids: tuple[str, ...]
    note: str
    outcome: Outcome


async def set_request_language(accept_language: Annotated[str | None, Header()] = None) -> None:
    """Answer in the language that the request accepts."""
    set_language(accept_language)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Everything below /api; `user` stands for the holder of the token in traces."""

    resources: Resources
    turns: TurnRunner
    answerer: Answerer
    user: str

    def router(self) -> APIRouter:
        """Return the routes that `bot.http.server.http_app` serves."""
        checks = [Depends(HTTPBearer(auto_error=False)), Depends(set_request_language)]
        router = APIRouter(prefix="/api", dependencies=checks)
        router.post("/chat")(self.chat)
        router.post("/rag/rewrite")(self.rewrite)
        router.post("/rag/ask", response_model_exclude=INTERNAL)(self.ask)
        router.post("/research/query", response_class=Response)(self.query)
        return router

    async def chat(
        self,
        message: Annotated[Message, Body()],
        history: Annotated[list[ChatMessage], Body(max_length=MAX_HISTORY)] = [],  # noqa: B006
    ) -> ChatResponse:
        """Ask the sommelier; `history` is the conversation so far, oldest message first."""
        earlier = [message.model_dump() for message in history]

        async def work(run: Run) -> Reply:
            # Concerns that the user stated before are found in the whole conversation.
            run = replace(run, history=earlier, deps=replace(get_deps(run), person=None))
            return await self.answerer.answer(message, run)

        reply = await self._turn("chat", message, work)
        if reply.outcome == "failed":
            raise HTTPException(503, UNAVAILABLE)
        note = " ".join(reply.notes)
        return ChatResponse(
            answer=reply.text, wine_ids=reply.wine_ids, note=note, outcome=reply.outcome
        )

    async def rewrite(self, question: Query) -> Refinement:
        """Rewrite a question for the search; nothing is answered."""
        enabled = self.resources.refinement is not False

        async def work(run: Run) -> Reply:
            text = guard_input(question, run.span)
            found = await refine_question(text, run=run, enabled=enabled)
            return Reply(text=found.refined, answer=found)

        reply = await self._turn("rewrite", question, work)
        if reply.outcome == "care":
            return Refinement(question, question, fallback_reason="refused")
        found: Refinement = _answer_of(reply)
        return found

    async def ask(
        self, question: Query, refine_prompt: Annotated[bool | None, Body()] = None
    ) -> Answer:
        """Answer a question from the documents, each statement with its source.

        `refine_prompt`: whether to search for a rewritten question too; null: as the server is set.
        """
        work = partial(look_ups.run_ask, question, resources=self.resources, refine=refine_prompt)
        reply = await self._turn("ask", question, work)
        if reply.outcome != "care":
            found: Answer = _answer_of(reply)
            return replace(found, note=" ".join(reply.notes), outcome=reply.outcome)
        return Answer(
            question=question,
            text=reply.text,
            footnoted=reply.text,
            refinement=Refinement(question, question, fallback_reason="refused"),
            outcome="care",
        )

    async def query(self, query: Query) -> Response:
        """Find passages, word for word.

        The response holds server-sent events: a `result` for each passage, then `done`. They come
        when all passages are checked.
        """
        work = partial(look_ups.run_quotes, query, resources=self.resources)
        reply = await self._turn("quotes", query, work)
        found: Quotes | None = None if reply.outcome == "care" else _answer_of(reply)
        quotes, summary = (found.quotes, found.summary) if found else ((), reply.text)
        shown, milliseconds = set(Snippet.model_fields), round(reply.seconds * 1000)
        events = [("result", quote.model_dump(by_alias=True, include=shown)) for quote in quotes]
        summary = " ".join([summary, *reply.notes])
        done = {"resultCount": len(quotes), "summary": summary, "processingTimeMs": milliseconds}
        content = b"".join(
            # JSON in ASCII is one line for any reader.
            format_sse_event(event=name, data_str=json.dumps(data))
            for name, data in (*events, ("done", done))
        )
        return Response(content, media_type="text/event-stream")

    async def call_tool(self, tools: Toolbox, call: ToolCall) -> ToolResult:
        """Run a call of another program's agent as a turn; in a crisis the result is help."""
        results = list[ToolResult]()

        async def work(run: Run) -> Reply:
            results.append(await tools.call(call, run))
            return Reply(text=results[0].text)

        reply = await self._turn("find", call.arguments, work)
        return results[0] if results else ToolResult(reply.text, error_type=reply.outcome)

    async def _turn(self, kind: Kind, text: str, work: AnswerFunction) -> Reply:
        """Run a turn of no user: the budget of all holds, nothing is delivered."""
        question = Question(text=text, kind=kind, session=SESSION, user=self.user)
        return await self.turns.run_turn(question, work)


def _answer_of(reply: Reply) -> Any:
    if reply.answer is None:
        raise HTTPException(503, UNAVAILABLE if reply.outcome == "failed" else reply.text)
    return reply.answer
