"""A message with its conversation, and what is looked up for it before a model is asked."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent.documents.passages import MAX_QUERY_CHARS, SEARCH_DOCUMENTS
from agent.engine.messages import ToolCall
from agent.engine.run import Run
from agent.i18n import current_language
from agent.query_reading.request import read_request
from agent.sommelier.asked_queries import find_asked_query
from agent.sommelier.attachment import READ_PICTURES, Attachment
from agent.sommelier.building_queries import is_for_documents, parse_unambiguous_query
from agent.sommelier.filters import get_safety_state
from agent.sommelier.queries import Catalogue
from agent.turn import StoredMessage, get_person

MAX_PREFETCHED_WINES: Final = 8
"""The most wines of the last answer that are looked up before a model is asked."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A message to answer, with the conversation before it and its pictures."""

    message: str
    history: Sequence[StoredMessage] = ()
    attachment: Attachment | None = None
    """The pictures of the message, or the last pictures of the conversation."""

    @property
    def new_attachment(self) -> Attachment | None:
        """Return the pictures if they were sent with this message."""
        if self.attachment is None or not self.attachment.is_new:
            return None
        return self.attachment

    @property
    def user_texts(self) -> list[str]:
        """Return the earlier messages of the user and this one, the newest last."""
        return [*self.texts_by("user"), self.message]

    @property
    def last_shown_ids(self) -> tuple[str, ...]:
        """Return the ids of the wines in the last answer that has shown any."""
        for earlier in reversed(self.history):
            if earlier.wine_ids:
                return earlier.wine_ids
        return ()

    def texts_by(self, role: str) -> list[str]:
        """Return the earlier texts of the user or of the assistant."""
        return [earlier.content for earlier in self.history if earlier.role == role]


async def list_prefetched_calls(
    inquiry: Inquiry,
    run: Run,
    catalogue: Catalogue,
    *,
    can_search_documents: bool,
) -> tuple[ToolCall, ...]:
    """Return the tool calls to run before a model is asked, as if it had made them.

    The calls have no id, because no model has asked for them.
    """
    shown_ids = inquiry.last_shown_ids
    # The user writes about the pictures if they are new, or if no wines were shown.
    if inquiry.attachment and (inquiry.new_attachment or not shown_ids):
        return (ToolCall("", READ_PICTURES, "{}"),)
    if shown_ids and not get_safety_state(run).forbids_alcohol:
        wine_ids = shown_ids[:MAX_PREFETCHED_WINES]
        arguments = json.dumps({"wine_ids": wine_ids})
        return (ToolCall("", "get_wine", arguments),)
    # Earlier messages may limit the search, so only the model can know what to look for.
    if inquiry.attachment or inquiry.history:
        return ()
    call = await _find_needed_call(
        inquiry.message, run, catalogue, can_search_documents=can_search_documents
    )
    if call is None:
        return ()
    return (call,)


async def _find_needed_call(
    message: str,
    run: Run,
    catalogue: Catalogue,
    *,
    can_search_documents: bool,
) -> ToolCall | None:
    """Return the call of a search that a first message certainly needs, or None."""
    language = current_language()
    request = read_request(message, language)
    if get_person(run).bottles and request.cellar_words:
        return None  # the user asks about their own cellar
    if can_search_documents and is_for_documents(request):
        arguments = json.dumps({"query": message[:MAX_QUERY_CHARS]})
        return ToolCall("", SEARCH_DOCUMENTS, arguments)
    query = await find_asked_query(catalogue, message, language)
    if query is None:
        query = parse_unambiguous_query(message, language)
    if query is None:
        return None
    # Without the limit, the tool returns as many wines as it does by default.
    filters = query.model_dump_json(exclude_defaults=True, exclude={"limit"})
    return ToolCall("", "search_wines", filters)
