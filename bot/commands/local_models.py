"""`sommelier model`: find a model server on this machine and save its model in .env."""

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
DEFAULT_PORTS: Final[Mapping[int, str]] = {
    11434: "Ollama",
    1234: "LM Studio",
    8080: "llama.cpp",
    8000: "vLLM",
}
"""The names of model servers by their default ports."""
TIMEOUT_SECONDS: Final = 2
MAX_MODELS: Final = 50
MODEL_NAME: Final = pattern(r"[\w./:@+-]{1,200}")
"""Names of models that need no quotes in .env. Models with other names are not offered."""
NON_CHAT_MARKERS: Final = ("embed", "rerank", "whisper", "tts")
"""Parts of the names of models that cannot chat."""


class ModelServer(NamedTuple):
    """A model server on this machine."""

    name: str
    base_url: str
    """The value for OPENAI_BASE_URL."""
    models: tuple[str, ...]
    """The names of its chat models. There is at least one."""


async def find_servers(ports: Sequence[int]) -> list[ModelServer]:
    """Return the servers on these ports of this machine that list chat models."""
    # With `trust_env`, requests would go through a proxy that the environment names.
    async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False) as http:
        searches = [_find_server(http, port) for port in ports]
        servers = await asyncio.gather(*searches)
    return [server for server in servers if server is not None]


async def _find_server(http: httpx2.AsyncClient, port: int) -> ModelServer | None:
    """Return the model server on a port of this machine.

    Return None if no server answers there, or if it has no chat model.
    """
    base_url = f"http://127.0.0.1:{port}/v1"
    try:
        response = await http.get(f"{base_url}/models")
        listed = response.json()["data"]
        names = [str(model["id"]) for model in listed[:MAX_MODELS]]
    except (httpx2.HTTPError, ValueError, LookupError, TypeError):
        return None
    chat_models = tuple(filter(_is_chat_model, names))
    if not chat_models:
        return None
    server_name = DEFAULT_PORTS.get(port, "A model server")
    return ModelServer(server_name, base_url, chat_models)


def _is_chat_model(name: str) -> bool:
    if not MODEL_NAME.fullmatch(name):
        return False
    return not any(marker in name for marker in NON_CHAT_MARKERS)


def offer_local_model(settings: Settings) -> Settings:
    """Ask whether to use a model server on this machine, if there is one.

    Return the settings after the answer. It is saved in .env, so that the question is asked once.
    """
    servers = asyncio.run(find_servers(settings.llm_local_ports))
    if not servers:
        return settings
    server = servers[0]
    model_name = server.models[0]
    question = f"{server.name} runs on this machine. Let {model_name} answer?"
    if typer.confirm(question, default=True):
        return use_model(server, model_name)
    write_settings({"LLM_LOCAL_PORTS": "none"})
    typer.echo("Not used. Run `sommelier model` to look for it again.")
    return settings


def use_model(server: ModelServer, model: str) -> Settings:
    """Save the model in .env, and return the new settings."""
    write_settings({"OPENAI_BASE_URL": server.base_url, "LLM_MODEL": model})
    settings = load_settings()
    profile = "full"
    if settings.is_small:
        profile = "small"
    note = f".env; profile {profile}, see docs/local-models.md"
    typer.echo(f"{model} answers from now on ({note}).")
    return settings


def model(
    port: Annotated[int | None, typer.Option(help="The port of its server.")] = None,
    name: Annotated[
        str | None,
        typer.Option(help="A model that the server lists; default: the first."),
    ] = None,
) -> None:
    """Find a model server on this machine and save one of its models in .env."""
    ports: Sequence[int]
    if port:
        ports = [port]
    else:
        ports = open_settings().llm_local_ports or list(DEFAULT_PORTS)
    servers = asyncio.run(find_servers(ports))
    for server in servers:
        models = ", ".join(server.models)
        typer.echo(f"{server.name} at {server.base_url}: {models}")
    for server in servers:
        if name is None or name in server.models:
            use_model(server, name or server.models[0])
            return
    shown_ports = ", ".join(str(number) for number in ports)
    wanted = name or "a model"
    typer.echo(f"No model server with {wanted} answers at port {shown_ports}.")
    raise typer.Exit(1)


def write_settings(values: Mapping[str, str]) -> None:
    """Set variables in .env, and keep its other lines. Only the owner may read a new file."""
    ENV_FILE.touch(mode=0o600)
    lines = []
    for line in ENV_FILE.read_text(encoding="utf-8").splitlines():
        name, _, _ = line.partition("=")
        if name.strip() not in values:
            lines.append(line)
    for name, value in values.items():
        lines.append(f"{name}={value}")
    ENV_FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
