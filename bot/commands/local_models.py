"""`sommelier model`: find a model server on this machine and write its model to .env."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import httpx2
import typer

from agent.text import pattern
from bot.commands.output import open_settings
from config import Settings, load_settings

ENV_FILE: Final = Path(".env")
USUAL_PORTS: Final[Mapping[int, str]] = {
    11434: "Ollama",
    1234: "LM Studio",
    8080: "llama.cpp",
    8000: "vLLM",
}
TIMEOUT_SECONDS: Final = 2
MAX_LISTED: Final = 50
NAME: Final = pattern(r"[\w./:@+-]{1,200}")
"""The names that fit on a line of .env as they are."""
NOT_FOR_CHAT: Final = ("embed", "rerank", "whisper", "tts")


class ModelServer(NamedTuple):
    """A model server on this machine: its address for OPENAI_BASE_URL, and its chat models."""

    name: str
    base_url: str
    models: tuple[str, ...]


async def find_servers(ports: Sequence[int]) -> list[ModelServer]:
    """Return the servers on these ports of this machine that list chat models."""
    async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as http:
        found = await asyncio.gather(*(_find_server(http, port) for port in ports))
    return [server for server in found if server is not None]


async def _find_server(http: httpx2.AsyncClient, port: int) -> ModelServer | None:
    url = f"http://127.0.0.1:{port}/v1"
    try:
        listed = (await http.get(f"{url}/models")).json()["data"]
        names = [str(entry["id"]) for entry in listed[:MAX_LISTED]]
    except (httpx2.HTTPError, ValueError, LookupError, TypeError):
        return None
    usable = (name for name in names if NAME.fullmatch(name))
    chat = tuple(name for name in usable if not any(part in name for part in NOT_FOR_CHAT))
    return ModelServer(USUAL_PORTS.get(port, "A model server"), url, chat) if chat else None


def offer_local_model(settings: Settings) -> Settings:
    """Ask once whether a model server found here may answer; return the settings to use.

    The answer is written to .env, so that nobody is asked twice.
    """
    servers = asyncio.run(find_servers(settings.llm_local_ports))
    if not servers:
        return settings
    server = servers[0]
    question = f"{server.name} runs on this machine. Let {server.models[0]} answer?"
    if typer.confirm(question, default=True):
        return use_model(server, server.models[0])
    write_settings({"LLM_LOCAL_PORTS": "none"})
    typer.echo("Not used. `sommelier model` looks for it again.")
    return settings


def use_model(server: ModelServer, model: str) -> Settings:
    """Write the model to .env and return the settings with it."""
    write_settings({"OPENAI_BASE_URL": server.base_url, "LLM_MODEL": model})
    settings = load_settings()
    profile = "small" if settings.is_small else "full"
    typer.echo(f"{model} answers from now on (.env; profile {profile}, see docs/local-models.md).")
    return settings


def model(
    port: Annotated[int | None, typer.Option(help="Where its server listens.")] = None,
    name: Annotated[str | None, typer.Option(help="One of those that it lists.")] = None,
) -> None:
    """Find a model server on this machine and write its model, or the first, to .env."""
    ports = (port,) if port else open_settings().llm_local_ports or tuple(USUAL_PORTS)
    servers = asyncio.run(find_servers(ports))
    for server in servers:
        typer.echo(f"{server.name} at {server.base_url}: {', '.join(server.models)}")
    for server in servers:
        if name in (None, *server.models):
            use_model(server, name or server.models[0])
            return
    where = ", ".join(map(str, ports))
    typer.echo(f"No model server with {name or 'a model'} answers at port {where}.")
    raise typer.Exit(1)


def write_settings(values: Mapping[str, str]) -> None:
    """Write variables into .env, which only its owner may read."""
    lines = ENV_FILE.read_text(encoding="utf-8").splitlines() if ENV_FILE.exists() else []
    others = [line for line in lines if line.partition("=")[0].strip() not in values]
    written = [*others, *(f"{name}={value}" for name, value in values.items())]
    ENV_FILE.touch(mode=0o600)
    ENV_FILE.write_text("\n".join(written) + "\n", encoding="utf-8")
