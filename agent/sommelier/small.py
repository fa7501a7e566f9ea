"""The small profile: search first, then let the model write about the results.

Models of a few billion parameters pick wrong tools more often than right ones
(docs/local-models.md). So the rules of the fallback read the message and search; the model is
offered no tools, and writes about the wines, or from the passage, in one request.
"""

from dataclasses import replace
from typing import Final

from agent.engine.loop import AgenticResponse, generate_agentic_response
from agent.engine.run import Run
from agent.fallback import LookUp, describe_request, describe_wine, source_of
from agent.i18n import translate
from agent.prompts import instructed, prompt_for
from agent.sommelier.answer import SMALL_SOMMELIER
from agent.sommelier.sommelier_prompts import SommelierResponse

WINES_PROMPT: Final = "sommelier-small"
PASSAGE_PROMPT: Final = "sommelier-small-question"
"""The names of the two prompts."""
MAX_WINES: Final = 4
"""Wines that the model chooses from: more make its request long and its choice no better."""


async def ask_small_model(
    message: str, run: Run, look_up: LookUp
) -> AgenticResponse[SommelierResponse] | None:
    """Return the model's answer to `message` from a look-up; None if nothing was found."""
    if (passage := look_up.passage) is not None:
        lines = [message, "", "Passage:", passage.text]
        response = await _ask(lines, run, PASSAGE_PROMPT, {passage.chunk.id: passage.chunk})
        text = f"{response.text}\n\n{source_of(passage)}" if response.ok else ""
        return replace(response, text=text)
    # "Why the first one?" finds nothing new: it is about wines that were shown.
    shown = look_up.context.meant(look_up.message) or look_up.context.shown
    wines = (look_up.found.wines if look_up.found else shown)[:MAX_WINES]
    if not wines:
        return None
    request = look_up.request
    wish = describe_request(request)
    lines = [message, f"({wish})\n" if wish else "", "Wines:"]
    lines += [f"{wine.id}: {describe_wine(wine, request)}. {wine.notes}".strip() for wine in wines]
    return await _ask(lines, run, WINES_PROMPT, {wine.id: wine for wine in wines})


async def _ask(
    lines: list[str], run: Run, prompt_name: str, sources: dict[str, object]
) -> AgenticResponse[SommelierResponse]:
    """Ask for an answer to these lines and their `sources`, without earlier messages."""
    prompt = prompt_for(run, prompt_name)
    return await generate_agentic_response(
        "\n".join([*lines, "", translate("write_in_language")]),
        run=instructed(run, prompt, language=translate("language_name")),
        contract=SMALL_SOMMELIER,
        sources=sources,
    )
