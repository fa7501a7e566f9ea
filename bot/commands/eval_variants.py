"""The variants of an evaluation: every model with every prompt."""

# ruff: noqa: PLC0415

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bot.commands.output import fail

if TYPE_CHECKING:
    from agent.evals.run import Variant
    from agent.llm import LLMService
    from agent.prompts import Prompts
    from agent.sommelier import Sommelier
    from bot.commands.eval_rooms import Rooms
    from config import Settings

REPOSITORY: Final = "repository"


@dataclass(frozen=True, slots=True)
class Named:
    """A variant that is not made yet: no model stands for the house sommelier."""

    label: str
    model: str | None
    prompts: "Prompts"


def wanted_variants(
    settings: "Settings", models: Sequence[str] | None, prompts: Sequence[str] | None
) -> list[Named]:
    """Every model with every prompt."""
    from agent.house_sommelier.model import MODEL_NAME

    names = list(
        dict.fromkeys(models or [settings.llm_model if settings.has_model else MODEL_NAME])
    )
    if not settings.has_model and names != [MODEL_NAME]:
        fail("there is no model to evaluate: set OPENAI_API_KEY, or OPENAI_BASE_URL", 2)
    texts = {text: _prompts(text) for text in dict.fromkeys(prompts or [REPOSITORY])}
    return [
        Named(
            f"{name} · {Path(text).stem}" if prompts else name,
            None if name == MODEL_NAME else name,
            chosen,
        )
        for name in names
        for text, chosen in texts.items()
    ]


def _prompts(text: str) -> "Prompts":
    from agent.evals.prompt_file import PromptFileError, read_prompt
    from agent.prompts import REPOSITORY as OWN

    if text == REPOSITORY:
        return OWN
    try:
        return read_prompt(Path(text))
    except PromptFileError as error:
        fail(str(error), 2)


@asynccontextmanager
async def open_variants(
    settings: "Settings", named: Sequence[Named], rooms: "Rooms"
) -> "AsyncIterator[list[Variant]]":
    """The variants, each a sommelier with its own model, prompt and research; models closed."""
    from agent.evals.run import Variant
    from bot import wiring

    models = {
        name: wiring.model(settings, name, settings.llm_response_mode)
        for name in dict.fromkeys(each.model for each in named)
        if name is not None
    }
    try:
        yield [
            Variant(
                each.label,
                _sommelier(
                    settings, [models[each.model]] if each.model else [], each.prompts, rooms
                ),
            )
            for each in named
        ]
    finally:
        for model in models.values():
            await model.close()


def _sommelier(
    settings: "Settings", models: "Sequence[LLMService]", prompts: "Prompts", rooms: "Rooms"
) -> "Sommelier":
    """The sommelier of the product; places are not searched for, which costs and changes daily."""
    from agent.research.desk import ResearchDesk
    from agent.sommelier import Sommelier
    from bot import wiring

    limits, prices = wiring.limits(settings), wiring.prices(settings)
    desk = ResearchDesk(
        documents=rooms.documents,
        models=models,
        refinement=settings.enable_query_refinement,
        limits=limits,
        prompts=prompts,
        prices=prices,
    )
    return Sommelier(
        catalogue=rooms.catalogue,
        models=models,
        limits=limits,
        research_tools=wiring.research_tools(desk),
        prompts=prompts,
        prices=prices,
    )
