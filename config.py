"""Settings of the whole product, read once from the environment and `.env`.

Every setting is documented in `.env.example`. An empty value counts as not set.
"""

import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import unquote, urlsplit

from platformdirs import user_data_path
from pydantic import Field, HttpUrl, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

ResponseMode = Literal["prompt", "json_object", "json_schema"]
TraceContent = Literal["full", "masked", "none"]
Access = Literal["open", "allow_list"]


class SettingsError(ValueError):
    """A setting has a wrong value; the message is one line and names the variable."""


def default_database_url() -> str:
    """An SQLite file in the platform's data folder."""
    return f"sqlite+aiosqlite:///{user_data_path('sommelier') / 'sommelier.sqlite3'}"


class Settings(BaseSettings):
    """What can be set, with the defaults that make an empty machine work."""

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    telegram_bot_token: SecretStr | None = None
    telegram_base_url: HttpUrl = HttpUrl("https://api.telegram.org")
    telegram_messages_per_second: int = Field(default=30, ge=0)

    openai_api_key: SecretStr | None = None
    openai_base_url: HttpUrl | None = None
    llm_model: str = Field(default="gpt-4o", min_length=1)
    llm_fallback_models: Annotated[tuple[str, ...], NoDecode] = ()
    llm_response_mode: ResponseMode = "json_object"
    llm_prices: str | None = None
    llm_timeout_seconds: float = Field(default=60, gt=0, le=600)
    llm_max_tokens: int = Field(default=1500, ge=64)
    llm_max_tokens_ceiling: int = Field(default=6000, ge=64)
    structured_output_max_retries: int = Field(default=2, ge=0, le=10)

    turn_max_requests: int = Field(default=12, ge=1)
    turn_max_tool_calls: int = Field(default=16, ge=0)
    turn_max_tokens: int = Field(default=100_000, ge=1)
    turn_max_cost_usd: float = Field(default=0.50, gt=0)
    turn_timeout_seconds: float = Field(default=120, gt=0)
    tool_timeout_seconds: float = Field(default=15, gt=0)

    max_content_length: int = Field(default=2000, ge=100)
    history_messages: int = Field(default=20, ge=0, le=200)

    burst_seconds: float = Field(default=0.8, ge=0, le=10)
    update_max_tries: int = Field(default=3, ge=1)
    turns_poll_seconds: float = Field(default=0.05, ge=0.005, le=5)
    turns_version: str = Field(default="turns-1", min_length=1)
    executor_id: str | None = None
    turns_at_once: int = Field(default=64, ge=1)
    shutdown_seconds: float = Field(default=20, ge=0)
    retention_days: float = Field(default=7, gt=0)

    webhook_url: HttpUrl | None = None
    webhook_secret: SecretStr | None = None
    http_host: str = "127.0.0.1"
    http_port: int | None = Field(default=None, ge=0, le=65535)
    api_token: SecretStr | None = None

    enable_query_refinement: bool | None = None
    embedding_model: str | None = None
    embedding_base_url: HttpUrl | None = None
    embedding_api_key: SecretStr | None = None
    document_max_mb: float = Field(default=20, gt=0, le=1000)
    searxng_url: HttpUrl | None = None
    brave_api_key: SecretStr | None = None

    database_url: SecretStr = Field(default_factory=lambda: SecretStr(default_database_url()))

    langfuse_public_key: SecretStr | None = None
    langfuse_secret_key: SecretStr | None = None
    langfuse_base_url: HttpUrl = HttpUrl("https://cloud.langfuse.com")
    langfuse_tracing_environment: str | None = None
    langfuse_release: str | None = None
    langfuse_prompt_label: str = Field(default="production", min_length=1)
    langfuse_prompt_seconds: float = Field(default=60, ge=5)
    trace_user_key: SecretStr = SecretStr("sommelier")
    trace_content: TraceContent = "masked"
    trace_retention_days: float = Field(default=14, gt=0)
    stats_retention_days: float = Field(default=90, ge=8)

    admin_ids: Annotated[tuple[int, ...], NoDecode] = ()
    access: Access = "open"
    budget_person_requests: int | None = Field(default=None, ge=1)
    budget_person_tokens: int | None = Field(default=None, ge=1)
    budget_person_cost_usd: float | None = Field(default=None, gt=0)
    budget_total_requests: int | None = Field(default=None, ge=1)
    budget_total_tokens: int | None = Field(default=None, ge=1)
    budget_total_cost_usd: float | None = Field(default=None, gt=0)
    budget_admins_exempt: bool = True

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @field_validator("admin_ids", mode="before")
    @classmethod
    def _are_ids_of_people(cls, value: object) -> object:
        # Runs after the splitting below: of such validators the last one is the first.
        ids = value if isinstance(value, tuple | list) else ()
        if not all(re.fullmatch(r"[1-9]\d{0,15}", str(each)) for each in ids):
            raise ValueError(
                "must be ids of people, like 12345,67890; a @name or the id of a group is none"
            )
        return value

    @field_validator("langfuse_tracing_environment")
    @classmethod
    def _environment_is_taken(cls, value: str | None) -> str | None:
        if value and (value.startswith("langfuse") or not re.fullmatch("[a-z0-9_-]{1,40}", value)):
            raise ValueError(
                "must be 1 to 40 of a-z, 0-9, _ and -, and not begin with langfuse: Langfuse "
                "refuses scores of any other"
            )
        return value

    @field_validator("llm_fallback_models", "admin_ids", mode="before")
    @classmethod
    def _split_at_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("database_url")
    @classmethod
    def _database_is_supported(cls, value: SecretStr) -> SecretStr:
        schemes = ("sqlite+aiosqlite:///", "postgresql+psycopg://")
        if not value.get_secret_value().startswith(schemes):
            raise ValueError(f"must start with {' or '.join(schemes)}")
        return value

    @model_validator(mode="after")
    def _webhook_is_whole(self) -> Self:
        if self.webhook_url is None:
            return self
        secret = self.webhook_secret.get_secret_value() if self.webhook_secret else ""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", secret):
            raise ValueError(
                "WEBHOOK_SECRET must be set with WEBHOOK_URL: 1 to 256 of A-Z, a-z, 0-9, _ and -"
            )
        if self.http_port is None:
            raise ValueError("HTTP_PORT must be set with WEBHOOK_URL: the port to listen on")
        return self

    @model_validator(mode="after")
    def _api_is_whole(self) -> Self:
        if self.api_token is None:
            return self
        if not re.fullmatch(r"[A-Za-z0-9._~+/-]{16,}=*", self.api_token.get_secret_value()):
            raise ValueError(
                "API_TOKEN must be 16 or more of A-Z, a-z, 0-9, . _ ~ + / and -, as "
                "`openssl rand -hex 32` prints them"
            )
        if self.http_port is None:
            raise ValueError("HTTP_PORT must be set with API_TOKEN: the port to listen on")
        return self

    @property
    def has_model(self) -> bool:
        """Whether a language model is configured; a local server needs a URL but no key."""
        return self.openai_api_key is not None or self.openai_base_url is not None

    @property
    def has_langfuse(self) -> bool:
        """Whether turns are sent to Langfuse."""
        return self.langfuse_public_key is not None and self.langfuse_secret_key is not None

    @property
    def has_place_search(self) -> bool:
        """Whether places are searched for, instead of links to a search being shown."""
        return self.searxng_url is not None or self.brave_api_key is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never stand in a log, beside what `bot.logs` knows by its form."""
        values = (
            self.telegram_bot_token,
            self.openai_api_key,
            self.embedding_api_key,
            self.brave_api_key,
            self.langfuse_secret_key,
            self.webhook_secret,
            self.api_token,
            self.trace_user_key if "trace_user_key" in self.model_fields_set else None,
        )
        password = urlsplit(self.database_url.get_secret_value()).password
        told = [value.get_secret_value() for value in values if value]
        return (*told, unquote(password)) if password else tuple(told)


def load_settings(env_file: Path | None = Path(".env")) -> Settings:
    """Settings from the environment and `env_file`.

    Raises:
        SettingsError: a value is wrong; one line that names the variable and says what is expected.
    """
    try:
        return Settings(_env_file=env_file)
    except ValidationError as error:
        raise SettingsError(describe(error)) from None


def describe(error: ValidationError) -> str:
    """One line for every wrong variable, without its value: it may be a secret."""
    lines = []
    for issue in error.errors(include_url=False, include_context=False, include_input=False):
        name = "_".join(str(part) for part in issue["loc"][:1]).upper()
        said = issue["msg"].removeprefix("Value error, ")
        lines.append(f"{name}: {said}" if name else said)
    return "; ".join(lines)
