"""Embedding sources: texts to vectors, on an OpenAI-compatible server or in this process.

Each is an `agent.documents.vectors.Embedder`; one call is one request, no text is cut or cached.
In this process a model needs the extra `local`: fastembed, which brings onnxruntime and tokenizers.
"""

import asyncio
import json
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
"""What a setting says before the name or folder of a local model."""
BATCH: Final = 16
"""Texts that go through the model at once: more would need more memory, and not less time."""
MODEL_FILES: Final = ("model.onnx", "onnx/model.onnx", "model_optimized.onnx")
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

    def __repr__(self) -> str:
        return f"EmbeddingService({self.name})"

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
"""Loads a model by its name or folder; what is downloaded is kept in the folder given."""


def is_installed() -> bool:
    """Say whether the extra `local` is installed; nothing is imported."""
    return find_spec("fastembed") is not None


class LocalEmbedding:
    """A model in this process, loaded by the first call, in a thread.

    `model` is a name that fastembed knows, or a folder with an ONNX model and its tokenizer. One
    call is worked on at a time.
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

    def __repr__(self) -> str:
        return f"LocalEmbedding({self.name})"

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self._loaded is None:
            self._loaded = self._load(self._model, self._cache)
        return [vector.tolist() for vector in self._loaded.embed(texts, batch_size=BATCH)]


def load_model(model: str, cache: Path) -> TextModel:
    """Load the model of a folder, or of a name that fastembed knows, downloaded once to `cache`.

    Raises:
        LocalModelError: it is not there, or the extra is not installed.
    """
    try:
        from fastembed import TextEmbedding  # noqa: PLC0415 - heavy, and optional
    except ImportError:
        raise LocalModelError(NOT_INSTALLED) from None
    folder = Path(model).expanduser()
    try:
        if folder.is_dir():
            return _model_of(folder)
        named: TextModel = TextEmbedding(model, cache_dir=str(cache))
    except LocalModelError:
        raise
    except Exception as error:
        raise LocalModelError(
            f"{model} could not be loaded ({type(error).__name__}); name a folder with an ONNX "
            "model and its tokenizer, or a model that fastembed knows (the first time it is "
            "downloaded, which needs the network)"
        ) from error
    return named


def _model_of(folder: Path) -> TextModel:
    from fastembed import TextEmbedding  # noqa: PLC0415
    from fastembed.common.model_description import ModelSource, PoolingType  # noqa: PLC0415

    name = str(folder.resolve())
    if not any(known["model"] == name for known in TextEmbedding.list_supported_models()):
        TextEmbedding.add_custom_model(
            model=name,
            pooling=PoolingType(pooling_of(folder)),
            normalization=True,
            # Never used, since the folder is given; the vectors themselves tell how long they are.
            sources=ModelSource(hf=name),
            dim=0,
            model_file=model_file_of(folder),
        )
    loaded: TextModel = TextEmbedding(name, specific_model_path=name)
    return loaded


def model_file_of(folder: Path) -> str:
    """Say where the ONNX model of a folder is, relative to it.

    Raises:
        LocalModelError: there is none.
    """
    found = next((file for file in MODEL_FILES if (folder / file).is_file()), None)
    if found is None:
        raise LocalModelError(f"{folder} holds none of {', '.join(MODEL_FILES)}")
    return found


def pooling_of(folder: Path) -> str:
    """Tell how vectors of tokens become one: CLS, LAST_TOKEN or MEAN, by its configuration."""
    try:
        config = json.loads((folder / "1_Pooling" / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return "MEAN"
    modes = {"pooling_mode_cls_token": "CLS", "pooling_mode_lasttoken": "LAST_TOKEN"}
    return next((name for key, name in modes.items() if config.get(key)), "MEAN")
