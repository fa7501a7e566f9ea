"""The requests and responses of the HTTP API.

Everything that the domain's own models say (`Refinement`, `Citation`, `Snippet`) is sent as it is.
"""

from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
)

from agent import lengths
from agent.documents.answer import Citation
from agent.documents.passages import LONGEST_QUESTION
from agent.documents.refine import FallbackReason
from agent.markdown import visible
from agent.turn_trace import Outcome

MAX_HISTORY: Final = 50


def clean(text: str) -> str:
    """Return the text without invisible characters; refuse it if nothing is left."""
    cleaned = visible(text).strip()
    if not cleaned:
        raise ValueError("must hold some words")
    return cleaned


Message = Annotated[str, Field(max_length=lengths.MESSAGE), AfterValidator(clean)]
Question = Annotated[str, Field(max_length=LONGEST_QUESTION), AfterValidator(clean)]
Note = Annotated[str, Field(description="Why no model answered, or what is left of a budget.")]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ChatMessage(_Request):
    """An earlier message of the conversation."""

    role: Literal["user", "assistant"]
    content: Message


class ChatRequest(_Request):
    """A message to the sommelier, and the conversation before it, oldest first."""

    message: Message
    history: list[ChatMessage] = Field(default=[], max_length=MAX_HISTORY)


class RewriteRequest(_Request):
    """A question to be rewritten for the search."""

    question: Question


class AskRequest(_Request):
    """A question to be answered from the documents."""

    question: Question
    refine_prompt: bool | None = Field(
        default=None,
        description="Whether to search for a rewritten question too; null: as the server is set.",
    )


class QueryRequest(_Request):
    """A query to find passages for."""

    query: Question


class _Response(BaseModel):
    """A response made by `of` from a domain object; an alias names a field that differs there."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    @classmethod
    def of(cls, found: object) -> Self:
        """Return a domain object as this response."""
        return cls.model_validate(found, from_attributes=True)


class ChatResponse(_Response):
    """The sommelier's answer, in Markdown, and the wines in it."""

    answer: str = Field(validation_alias="text")
    wine_ids: list[str]
    note: Annotated[Note, BeforeValidator(" ".join)] = Field(validation_alias="notes")
    outcome: Outcome


class AskResponse(_Response):
    """An answer. `answer` cites as `[path]`, `footnoted` as `[number]` of `citations`."""

    question: str
    answer: str = Field(validation_alias="text")
    footnoted: str
    citations: list[Citation]
    enough_information: bool
    by_model: bool
    note: Note
    outcome: Outcome
    refined_question: str | None
    fallback_reason: FallbackReason | None = Field(
        validation_alias=AliasPath("refinement", "fallback_reason"),
        description="Why the question was not refined; null if it was.",
    )
