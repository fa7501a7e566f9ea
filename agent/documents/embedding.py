"""Sources of vectors: a model on an OpenAI-compatible server, or one in this process.

Each is an `agent.documents.vectors.Embedder`; one call is one request, no text is cut or cached.
In this process a model needs the extra `local`: fastembed, which brings onnxruntime and tokenizers.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import BaseModel, SecretStr

from agent import lengths
from agent.engine.errors import AgentError
from agent.engine.llm import LOCAL_KEY

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PREFIX: Final = "onnx:"
"""The prefix of a local model's name in a setting."""
BATCH: Final = 16
"""Texts that go through the model at once: more would need more memory, and not less time."""
NOT_INSTALLED: Final = (
    "a model on this machine needs the extra `local`: pip install --require-hashes "
    '-r requirements/local.txt, or pip install "sommelier[local]"'
)


class LocalModelError(AgentError):
    """The embedding model of this machine could not be loaded."""


class _Vector(BaseModel):
    index: int
    embedding: list[float]


class _Vectors(BaseModel):
    data: list[_Vector]


class EmbeddingService:
    """A model of an OpenAI-compatible server."""

    def __init__(
        self,
        *,
        model: str,
        api_key: SecretStr | None = None,
        base_url: str | None = None,
        timeout_seconds: float = 60,
    ) -> None:
        self.name = model
        self._api_key = api_key
        self._base_url = base_url
        self._timeout_seconds = timeout_seconds
        self._opened: AsyncOpenAI | None = None

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order. Raises what the client raises."""
        # Floats, because many servers do not know the client's own default, base64.
        async with asyncio.timeout(self._timeout_seconds):
            response = await self._client.embeddings.with_raw_response.create(
                model=self.name, input=list(texts), encoding_format="float"
            )
        # Not by the client's own models: they take each number of each vector by itself.
        found = _Vectors.model_validate_json(response.content).data
        return [item.embedding for item in sorted(found, key=lambda item: item.index)]

    async def close(self) -> None:
        """Close the connections to the server."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    @property
    def _client(self) -> "AsyncOpenAI":
        if self._opened is None:
            # Heavy, needed by the first request.
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient  # noqa: PLC0415

            limit = lengths.ends_at(lengths.SERVICE_BYTES)
            self._opened = AsyncOpenAI(
                api_key=self._api_key.get_secret_value() if self._api_key else LOCAL_KEY,
                base_url=self._base_url,
                max_retries=0,
                timeout=self._timeout_seconds,
                http_client=DefaultAsyncHttpxClient(event_hooks={"response": [limit]}),
            )
        return self._opened


class TextModel(Protocol):
    """A loaded model; what `fastembed.TextEmbedding` is."""

    def embed(self, documents: Sequence[str], batch_size: int) -> Iterable[Any]:
        """Return one vector for each text, in order, as numpy has it."""
        ...


Load = Callable[[str, Path], TextModel]
"""Loads a model by its name; what is downloaded is kept in the folder given."""


def is_installed() -> bool:
    """Say whether the extra `local` is installed; nothing is imported."""
    return find_spec("fastembed") is not None


class LocalEmbedding:
    """A model in this process that fastembed knows by name, loaded by the first call, in a thread.

    One call is worked on at a time.
    """

    def __init__(self, model: str, *, cache: Path, load: Load | None = None) -> None:
        self.name = f"{PREFIX}{model}"
        self._model = model
        self._cache = cache
        self._load = load or load_model
        self._loaded: TextModel | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedding")

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order.

        Raises:
            LocalModelError: the model is not there, or the extra is not installed.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._embed, list(texts))

    async def close(self) -> None:
        """Give up what waits; what is being worked on ends by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self._loaded is None:
            self._loaded = self._load(self._model, self._cache)
        return [vector.tolist() for vector in self._loaded.embed(texts, batch_size=BATCH)]


def load_model(model: str, cache: Path) -> TextModel:
    """Load a model that fastembed knows, downloaded once to `cache`.

    Raises:
        LocalModelError: it is not there, or the extra is not installed.
    """
    try:
        from fastembed import TextEmbedding  # noqa: PLC0415 - heavy, and optional
    except ImportError:
        raise LocalModelError(NOT_INSTALLED) from None
    try:
        loaded: TextModel = TextEmbedding(model, cache_dir=str(cache))
    except Exception as error:
        raise LocalModelError(
            f"{model} could not be loaded ({type(error).__name__}); name a model that fastembed "
            "knows; the first time it is downloaded, which needs the network"
        ) from error
    return loaded
