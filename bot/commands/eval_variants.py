"""The variants of an evaluation: every model with every prompt."""

# ruff: noqa: PLC0415

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bot.commands.output import fail

if TYPE_CHECKING:
    from agent.engine.llm import LLMService
    from agent.engine.prompts import Prompts
    from agent.evals.run import Variant
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

    texts = _prompts(settings, list(dict.fromkeys(prompts or [REPOSITORY])))
    titles = _titles(list(texts))
    names = list(
        dict.fromkeys(models or [settings.model.name if settings.model.is_set else MODEL_NAME])
    )
    if not settings.model.is_set and names != [MODEL_NAME]:
        fail("there is no model to evaluate: set OPENAI_API_KEY, or OPENAI_BASE_URL", 2)
    return [
        Named(
            f"{name} · {titles[text]}" if prompts else name,
            None if name == MODEL_NAME else name,
            chosen,
        )
        for name in names
        for text, chosen in texts.items()
    ]


def _prompts(settings: "Settings", wanted: Sequence[str]) -> "dict[str, Prompts]":
    """The prompts by how they are named; Langfuse is asked only for those that are there."""
    from agent.evals.prompts import PromptRefused, prompt_of_file
    from agent.prompts import REPOSITORY as OWN

    found: dict[str, Prompts] = {REPOSITORY: OWN}
    try:
        for name in wanted:
            if name != REPOSITORY and not _is_managed(name):
                found[name] = prompt_of_file(Path(name))
        if managed := [name for name in wanted if _is_managed(name)]:
            found |= asyncio.run(_managed(settings, managed))
    except PromptRefused as error:
        fail(str(error), 2)
    return {name: found[name] for name in wanted}


async def _managed(settings: "Settings", names: Sequence[str]) -> "dict[str, Prompts]":
    from agent.evals.prompts import managed_prompt
    from bot.commands.prompts import open_prompt_store

    async with open_prompt_store(settings) as store:
        return {name: await managed_prompt(store, name) for name in names}


def _is_managed(name: str) -> bool:
    from agent.evals.prompts import MANAGED

    return bool(MANAGED.fullmatch(name)) and not Path(name).exists()


def _titles(names: Sequence[str]) -> dict[str, str]:
    """What stands for a prompt in a label: the file's name, the whole path where two share one."""
    short = {name: name if _is_managed(name) else Path(name).stem for name in names}
    shared = {title for title, times in Counter(short.values()).items() if times > 1}
    return {name: name if title in shared else title for name, title in short.items()}


@asynccontextmanager
async def open_variants(
    settings: "Settings", named: Sequence[Named], rooms: "Rooms"
) -> "AsyncIterator[list[Variant]]":
    """The variants, each a sommelier with its own model, prompt and research; models closed."""
    from bot.resources import model_of

    models = {
        name: model_of(settings, name, settings.model.response_mode)
        for name in dict.fromkeys(each.model for each in named)
        if name is not None
    }
    try:
        yield [
            _variant(settings, each, [models[each.model]] if each.model else [], rooms)
            for each in named
        ]
    finally:
        for model in models.values():
            await model.close()


def _variant(
    settings: "Settings", named: Named, models: "Sequence[LLMService]", rooms: "Rooms"
) -> "Variant":
    """The sommelier of the product; places are not searched for, which costs and changes daily."""
    from agent.desk import ResearchDesk
    from agent.evals.run import Variant
    from agent.sommelier.service import Sommelier
    from bot.resources import prices, research_tools

    desk = ResearchDesk(
        documents=rooms.documents,
        models=models,
        refinement=settings.documents.refinement,
        limits=settings.turn.limits,
        prompts=named.prompts,
        prices=prices(settings),
    )
    sommelier = Sommelier(catalogue=rooms.catalogue, research_tools=research_tools(desk))
    return Variant(named.label, sommelier, desk.run())
