"""`sommelier model`: finds a model server on this machine, tries its model, writes it to .env.

What a model can do is tried out with a few requests.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import httpx2
import typer
from dotenv import set_key
from pydantic import BaseModel

from agent.engine.contract import Evidence, OutputContract
from agent.engine.errors import ModelError, ModelRejected, ParameterDeclined
from agent.engine.loop import system_prompt
from agent.engine.messages import LLM, LLMResponse, Message, OutputSchema, ResponseMode, ToolSchema
from agent.engine.models import MAX_DECLINED
from agent.engine.parsing import parse_response
from agent.engine.tools import json_object
from bot.services import model_of
from config import Settings, load_settings

ENV_FILE: Final = Path(".env")
USUAL: Final[Mapping[int, str]] = {
    11434: "Ollama",
    1234: "LM Studio",
    8080: "llama.cpp",
    8000: "vLLM",
}
SECONDS: Final = 2
LARGEST_LIST: Final = 50
SMALL_CONTEXT: Final = 8192
"""Tokens; a model that takes in no more is told less."""
NOT_FOR_CHAT: Final = ("embed", "rerank", "whisper", "tts")


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A model server that answers on this machine, and the models that it lists."""

    name: str
    port: int
    models: tuple[str, ...]

    @property
    def base_url(self) -> str:
        """Its address, as OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self.port}/v1"


async def servers_here(ports: Sequence[int]) -> list[ModelServer]:
    """Find the servers on these ports of this machine that list models for chats."""
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as http:
        found = await asyncio.gather(*(_server(http, port) for port in ports))
    return [each for each in found if each is not None]


async def _server(http: httpx2.AsyncClient, port: int) -> ModelServer | None:
    listed = (await _json(http, f"http://127.0.0.1:{port}/v1/models")).get("data")
    entries = listed[:LARGEST_LIST] if isinstance(listed, list) else []
    names = [str(each.get("id", ""))[:200] for each in entries if isinstance(each, dict)]
    chat = [name for name in names if name and not any(part in name for part in NOT_FOR_CHAT)]
    return ModelServer(USUAL.get(port, "A model server"), port, tuple(chat)) if chat else None


async def context_of(server: ModelServer, model: str) -> int | None:
    """How many tokens a server lets a model take in, in whichever way it tells; None if in none.

    Ollama tells of a model that is loaded, as it is after a request.
    """
    root = f"http://127.0.0.1:{server.port}"
    async with httpx2.AsyncClient(timeout=SECONDS, trust_env=False) as http:
        paths = ("/api/ps", "/api/v0/models", "/props", "/v1/models")
        told = await asyncio.gather(*(_json(http, f"{root}{path}") for path in paths))
    return next((size for each in told for size in _contexts(each, model)), None)


def _contexts(told: Mapping[str, Any], model: str) -> Iterator[int]:
    """The sizes that an answer tells of a model, the one that holds now before the largest."""
    listed = told.get("models") or told.get("data") or []
    entries = [each for each in listed if isinstance(each, dict)]
    own = [
        each for each in entries if model in (each.get("id"), each.get("name"), each.get("model"))
    ]
    general = told.get("default_generation_settings")
    for entry in [*own, general] if isinstance(general, dict) else own:
        for name in ("loaded_context_length", "context_length", "n_ctx", "max_model_len"):
            if isinstance(size := entry.get(name), int) and size > 0:
                yield size


async def _json(http: httpx2.AsyncClient, url: str) -> Mapping[str, Any]:
    try:
        response = await http.get(url)
        body = response.json() if response.status_code == httpx2.codes.OK else None
    except (httpx2.HTTPError, ValueError):
        return {}
    return body if isinstance(body, dict) else {}


MODES: Final[tuple[ResponseMode, ...]] = ("json_schema", "json_object", "prompt")
"""How an answer may be asked for, the strictest first."""
TRIES: Final = 2
"""A small model that calls a tool now and then is one that does."""
ANSWER_TOKENS: Final = 1000
REFUSED: Final = frozenset({400, 422, 501})


class Pairing(BaseModel):
    """What the model is asked for."""

    dish: str
    colour: Literal["red", "white"]
    serve_cold: bool


TRIAL: Final = OutputContract(Pairing)
TOOL: Final = ToolSchema(
    "count_bottles",
    "Count the bottles of a wine in the cellar.",
    {
        "type": "object",
        "properties": {"wine_id": {"type": "string"}},
        "required": ["wine_id"],
        "additionalProperties": False,
    },
)
USE_THE_TOOL: Final = "How many bottles of the wine w7 are in the cellar? Look it up with the tool."
ANSWER: Final = "Which wine goes with oysters: red or white, and is it served cold?"


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a model can: call tools, and answer as a schema says if it is asked in `mode`.

    Without a mode no answer was valid in any.
    """

    tools: bool
    mode: ResponseMode | None


async def try_model(model_in: Callable[[ResponseMode], LLM]) -> Abilities:
    """Try a model; `model_in` makes it for a response mode. Takes two to ten requests.

    Raises:
        ModelError: it cannot be asked at all.
    """
    tools = await calls_tools(model_in("prompt"))
    for mode in MODES:
        model = model_in(mode)
        # Some servers hold a model to the form of its answer so strictly that it calls no tool.
        spoken = await answers_in(model)
        if spoken and (spoken == "prompt" or not tools or await calls_tools(model, TRIAL.output)):
            return Abilities(tools, spoken)
    return Abilities(tools, None)


async def calls_tools(model: LLM, output: OutputSchema | None = None) -> bool:
    """Tell whether a model calls a tool when it is told to, asked for an answer of `output`."""
    for _ in range(TRIES):
        reply = await _asked(model, "Use your tools.", USE_THE_TOOL, [TOOL], output)
        for call in reply.tool_calls if reply else ():
            try:
                if call.name == TOOL.name and json_object(call.arguments).get("wine_id"):
                    return True
            except ValueError:
                continue
    return False


async def answers_in(model: LLM) -> ResponseMode | None:
    """Tell in which mode a model answers as a schema says: its own, or one it had to step down to.

    None if its answer is not valid.
    """
    reply = await _asked(model, system_prompt("", TRIAL).strip(), ANSWER, [], TRIAL.output)
    if reply is None or not parse_response(reply, TRIAL, Evidence()).ok:
        return None
    return next((mode for mode in MODES if mode == reply.mode), "prompt")


async def _asked(
    model: LLM,
    instructions: str,
    question: str,
    tools: list[ToolSchema],
    output: OutputSchema | None,
) -> LLMResponse | None:
    """What a model says; None where its server refuses such a request."""
    messages: list[Message] = [
        {"role": "system", "content": instructions},
        {"role": "user", "content": question},
    ]
    for _ in range(MAX_DECLINED):
        try:
            return await model.generate_with_tools(
                messages, tools, output=output, max_tokens=ANSWER_TOKENS
            )
        except ParameterDeclined:
            continue
        except ModelRejected as error:
            if tools or (output is not None and error.status in REFUSED):
                return None
            raise
    return None


async def tried(settings: Settings) -> Abilities:
    """Try out the configured model.

    Raises:
        ModelError: it cannot be asked.
    """
    async with AsyncExitStack() as opened:

        def model_in(mode: ResponseMode) -> LLM:
            model = model_of(settings, settings.model.name, mode)
            opened.push_async_callback(model.close)
            return model

        return await try_model(model_in)


def settings_for(
    server: ModelServer, model: str, abilities: Abilities, context: int | None
) -> dict[str, str]:
    """What .env says of a model."""
    small = not abilities.tools or (context is not None and context <= SMALL_CONTEXT)
    return {
        "OPENAI_BASE_URL": server.base_url,
        "LLM_MODEL": model,
        "LLM_RESPONSE_MODE": abilities.mode or ("prompt" if abilities.tools else "json_schema"),
        "LLM_TOOLS": "yes" if abilities.tools else "no",
        "LLM_PROFILE": "small" if small else "full",
        **({"LLM_CONTEXT_TOKENS": str(context)} if context and context >= 2048 else {}),
    }


def write_settings(values: Mapping[str, str]) -> None:
    """Put variables into .env, which nobody else may read."""
    if not ENV_FILE.exists():
        os.close(os.open(ENV_FILE, os.O_CREAT | os.O_WRONLY, 0o600))
    for name, value in values.items():
        set_key(ENV_FILE, name, value, quote_mode="auto")


def in_words(abilities: Abilities) -> str:
    """Say what a model can."""
    tools = "calls tools" if abilities.tools else "calls no tools, so the cellar is searched for it"
    mode = (
        f"answers as asked in mode {abilities.mode}" if abilities.mode else "gave no valid answer"
    )
    return f"{tools}; {mode}"


def offer(settings: Settings) -> Settings:
    """Offer a model server that is found on this machine; the settings with it, if it is taken.

    What is answered is written to .env: nobody is asked twice.
    """
    servers = asyncio.run(servers_here(settings.model.local_ports))
    if not servers:
        return settings
    server = servers[0]
    asked = f"{server.name} runs on this machine. Let {server.models[0]} answer?"
    if typer.confirm(asked, default=True):
        return take(settings, server, server.models[0])
    write_settings({"LLM_LOCAL_PORTS": "none"})
    typer.echo("Not used. `sommelier model` looks for it again.")
    return settings


def take(settings: Settings, server: ModelServer, model: str) -> Settings:
    """Try a model, write what it can to .env, and return the settings that hold then."""
    typer.echo(f"Trying {model}; one that is not loaded yet takes a while ...")
    chosen = {"base_url": server.base_url, "name": model, "api_key": None}
    trial = settings.model.model_copy(update=chosen)
    try:
        abilities = asyncio.run(tried(settings.model_copy(update={"model": trial})))
    except ModelError as error:
        typer.echo(f"It cannot be used: {error}. Nothing was changed.")
        return settings
    context = asyncio.run(context_of(server, model))
    write_settings(settings_for(server, model, abilities, context))
    taken_in = f"; takes in {context} tokens" if context else ""
    typer.echo(f"{model} {in_words(abilities)}{taken_in}. It is in .env now.")
    return load_settings()


def find_model(settings: Settings, port: int | None, name: str | None) -> bool:
    """Take the model that is named, or the first that is found here; False if there is none."""
    ports = (port,) if port else settings.model.local_ports or tuple(USUAL)
    servers = asyncio.run(servers_here(ports))
    for server in servers:
        typer.echo(f"{server.name} at {server.base_url}: {', '.join(server.models)}")
    found = ((server, each) for server in servers for each in server.models)
    wanted = next((each for each in found if name in (None, each[1])), None)
    if wanted is None:
        typer.echo(f"No model server with {name or 'a model'} answers at port {_listed(ports)}.")
        return False
    take(settings, *wanted)
    return True


def _listed(ports: Sequence[int]) -> str:
    return ", ".join(map(str, ports))
