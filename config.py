"""Settings of the whole product, read once from the environment and `.env`, in groups.

Every variable is documented in `.env.example`. An empty value counts as not set. A default stands
here and nowhere else; those of a turn's limits are the engine's, for those who use it alone.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, cast
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from dotenv import dotenv_values
from platformdirs import user_data_path
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    SecretStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from agent.engine.limits import Limits
from agent.text import pattern

LIMITS: Final = Limits()
PERSON: Final = pattern(r"[1-9][0-9]{0,15}")
BOT_TOKEN: Final = pattern(r"\d+:[\w-]+")
ENVIRONMENT: Final = pattern("[a-z0-9_-]{1,40}")
SECRET: Final = pattern("[A-Za-z0-9_-]{16,256}")
TOKEN: Final = pattern("[A-Za-z0-9._~+/-]{16,}=*")
MODEL_SIZE: Final = pattern(r"(?:^|[^a-z0-9.])(?:[0-9]+x)?(\d{1,4}(?:\.\d{1,3})?)b(?:$|[^a-z0-9])")
"""How a model's name tells its size, in billions of parameters."""
SMALL_BILLIONS: Final = 7
"""Models of fewer parameters pick wrong tools more often than right ones (docs/local-models.md)."""
HTTP_URL: Final = TypeAdapter(HttpUrl)
SHARED_ACCOUNTS: Final = frozenset(
    {"777000", "1087968824", "136817688", "1271266957", "489000", "5434988373"}
)
"""Telegram's service messages, anonymous admins, channels, replies, codes, the spam filter."""


class SettingsError(ValueError):
    """A setting has a wrong value; the message is one line and names the variable."""


def _without_slash(value: str) -> str:
    try:
        return str(HTTP_URL.validate_python(value)).rstrip("/")
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"]) from None


def _at_commas(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _without_none(value: object) -> object:
    return () if value == ("none",) else value


def _at_equals(value: object) -> object:
    pairs = [part.partition("=") for part in value] if isinstance(value, tuple) else []
    if not all(name.strip() and sign for name, sign, _ in pairs):
        raise ValueError("must be headers like name=value,other=value")
    return tuple((name.strip(), unquote(text.strip())) for name, _, text in pairs)


def _are_people(value: object) -> object:
    ids = value if isinstance(value, tuple) else ()
    if not all(PERSON.fullmatch(str(each)) for each in ids):
        raise ValueError(
            "must be ids of people, like 12345,67890; a @name or the id of a group is none"
        )
    if shared := SHARED_ACCOUNTS.intersection(map(str, ids)):
        raise ValueError(
            f"{', '.join(sorted(shared))} is Telegram's own account, in whose name others write "
            "(channels, admins who hide); name the people themselves"
        )
    return value


def _is_taken_by_langfuse(value: str) -> str:
    if value.startswith("langfuse") or not ENVIRONMENT.fullmatch(value):
        raise ValueError(
            "must be 1 to 40 of a-z, 0-9, _ and -, and not begin with langfuse: Langfuse "
            "refuses scores of any other"
        )
    return value


def _is_supported(value: SecretStr) -> SecretStr:
    schemes = ("sqlite+aiosqlite:///", "postgresql+psycopg://")
    if not value.get_secret_value().startswith(schemes):
        raise ValueError(f"must start with {' or '.join(schemes)}")
    return value


def _time_zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (OSError, ValueError):
        if value != "UTC":
            raise ValueError("is no time zone: write one like Europe/Vienna, or UTC") from None
    return value


Url = Annotated[str, AfterValidator(_without_slash)]
Names = Annotated[tuple[str, ...], BeforeValidator(_at_commas)]
Ports = Annotated[tuple[int, ...], BeforeValidator(_without_none), BeforeValidator(_at_commas)]
Headers = Annotated[
    tuple[tuple[str, str], ...], BeforeValidator(_at_equals), BeforeValidator(_at_commas)
]
# Of validators that run before the type's own, the last one is the first.
PeopleIds = Annotated[tuple[int, ...], BeforeValidator(_are_people), BeforeValidator(_at_commas)]
Environment = Annotated[str, AfterValidator(_is_taken_by_langfuse)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_is_supported)]


class Group(BaseModel):
    """Settings that belong together; a field's alias is the name of its variable."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, hide_input_in_errors=True, protected_namespaces=()
    )


class TelegramSettings(Group):
    """The bot, and Telegram's server."""

    bot_token: SecretStr | None = Field(None, alias="TELEGRAM_BOT_TOKEN")
    base_url: Url = Field("https://api.telegram.org", alias="TELEGRAM_BASE_URL")
    messages_per_second: int = Field(30, alias="TELEGRAM_MESSAGES_PER_SECOND", ge=0)
    group_drafts: bool = Field(True, alias="TELEGRAM_GROUP_DRAFTS")

    @property
    def token(self) -> str:
        """The bot's token.

        Raises:
            SettingsError: there is none, or it cannot be one.
        """
        if self.bot_token is None:
            raise SettingsError(
                "TELEGRAM_BOT_TOKEN is not set: set it to what @BotFather gives you"
            )
        token = self.bot_token.get_secret_value()
        if not BOT_TOKEN.fullmatch(token):
            raise SettingsError(
                "TELEGRAM_BOT_TOKEN is not a bot token; it looks like 123456789:AAExampleExample"
            )
        return token


class ModelSettings(Group):
    """The language models; `name` is asked first, then those of `fallback_names` in their order."""

    api_key: SecretStr | None = Field(None, alias="OPENAI_API_KEY")
    base_url: Url | None = Field(None, alias="OPENAI_BASE_URL")
    name: str = Field("gpt-4o", alias="LLM_MODEL", min_length=1)
    fallback_names: Names = Field((), alias="LLM_FALLBACK_MODELS")
    response_mode: Literal["prompt", "json_object", "json_schema"] | None = Field(
        None, alias="LLM_RESPONSE_MODE"
    )
    prices: str | None = Field(None, alias="LLM_PRICES")
    timeout_seconds: float = Field(60, alias="LLM_TIMEOUT_SECONDS", gt=0, le=600)
    context_tokens: int | None = Field(None, alias="LLM_CONTEXT_TOKENS", ge=2048)
    profile: Literal["full", "small"] | None = Field(None, alias="LLM_PROFILE")
    local_ports: Ports = Field((11434, 1234, 8080, 8000), alias="LLM_LOCAL_PORTS")

    @property
    def is_set(self) -> bool:
        """Tell whether a model is configured; a local server needs a URL but no key."""
        return self.api_key is not None or self.base_url is not None

    @property
    def mode(self) -> Literal["prompt", "json_object", "json_schema"]:
        """Return how answers are asked for: as set, else strictly of a small model."""
        return self.response_mode or ("json_schema" if self.is_small else "json_object")

    @property
    def is_small(self) -> bool:
        """Tell whether the model gets the small profile: as set, else by the size in its name.

        `qwen2.5:1.5b` is small, `qwen2.5:14b` and a name without a size are not.
        """
        if self.profile is not None:
            return self.profile == "small"
        size = MODEL_SIZE.search(self.name.lower())
        return size is not None and float(size[1]) < SMALL_BILLIONS


class SensesSettings(Group):
    """The models that see and hear, and their servers, where these are not the model's own."""

    vision_model: str | None = Field(None, alias="VISION_MODEL")
    vision_base_url: Url | None = Field(None, alias="VISION_BASE_URL")
    vision_api_key: SecretStr | None = Field(None, alias="VISION_API_KEY")
    transcription_model: str | None = Field(None, alias="TRANSCRIPTION_MODEL")
    transcription_base_url: Url | None = Field(None, alias="TRANSCRIPTION_BASE_URL")
    transcription_api_key: SecretStr | None = Field(None, alias="TRANSCRIPTION_API_KEY")
    usd_per_minute: float = Field(0.006, alias="TRANSCRIPTION_USD_PER_MINUTE", ge=0)
    voice_seconds: int = Field(180, alias="VOICE_MAX_SECONDS", ge=1, le=3600)
    speech_model: str | None = Field(None, alias="SPEECH_MODEL")
    speech_voice: str = Field("alloy", alias="SPEECH_VOICE", min_length=1)
    speech_base_url: Url | None = Field(None, alias="SPEECH_BASE_URL")
    speech_api_key: SecretStr | None = Field(None, alias="SPEECH_API_KEY")
    usd_per_million: float = Field(15, alias="SPEECH_USD_PER_MILLION", ge=0)


class TurnSettings(Group):
    """What one turn may use, and what is remembered of it."""

    structured_output_max_retries: int = Field(
        LIMITS.structured_output_max_retries, alias="STRUCTURED_OUTPUT_MAX_RETRIES", ge=0, le=10
    )
    requests: int = Field(LIMITS.requests, alias="TURN_MAX_REQUESTS", ge=1)
    tool_calls: int = Field(LIMITS.tool_calls, alias="TURN_MAX_TOOL_CALLS", ge=0)
    tokens: int = Field(LIMITS.tokens, alias="TURN_MAX_TOKENS", ge=1)
    cost_usd: float = Field(LIMITS.cost_usd, alias="TURN_MAX_COST_USD", gt=0)
    seconds: float = Field(LIMITS.seconds, alias="TURN_TIMEOUT_SECONDS", gt=0)
    tool_seconds: float = Field(LIMITS.tool_seconds, alias="TOOL_TIMEOUT_SECONDS", gt=0)
    answer_tokens: int = Field(LIMITS.answer_tokens, alias="LLM_MAX_TOKENS", ge=64)
    answer_tokens_ceiling: int = Field(
        LIMITS.answer_tokens_ceiling, alias="LLM_MAX_TOKENS_CEILING", ge=64
    )
    max_content_length: int = Field(2000, alias="MAX_CONTENT_LENGTH", ge=100)
    history_messages: int = Field(20, alias="HISTORY_MESSAGES", ge=0, le=200)

    @property
    def limits(self) -> Limits:
        """The limits as the engine takes them."""
        return Limits(**self.model_dump(exclude={"max_content_length", "history_messages"}))


class UpdateSettings(Group):
    """How updates become turns, and how long their record is kept."""

    burst_seconds: float = Field(0.8, alias="BURST_SECONDS", ge=0, le=10)
    max_tries: int = Field(3, alias="UPDATE_MAX_TRIES", ge=1)
    at_once: int = Field(64, alias="TURNS_AT_ONCE", ge=1)
    shutdown_seconds: float = Field(20, alias="SHUTDOWN_SECONDS", ge=0)
    retention_days: float = Field(7, alias="RETENTION_DAYS", gt=0)
    time_zone: Annotated[str, AfterValidator(_time_zone)] = Field("UTC", alias="TIME_ZONE")


class HttpSettings(Group):
    """What is served over HTTP: the webhook, metrics, the API."""

    webhook_url: Url | None = Field(None, alias="WEBHOOK_URL")
    webhook_secret: SecretStr | None = Field(None, alias="WEBHOOK_SECRET")
    host: str = Field("127.0.0.1", alias="HTTP_HOST")
    port: int | None = Field(None, alias="HTTP_PORT", ge=0, le=65535)
    trusted_proxies: str = Field("127.0.0.1", alias="HTTP_TRUSTED_PROXIES")
    api_token: SecretStr | None = Field(None, alias="API_TOKEN")
    admin_token: SecretStr | None = Field(None, alias="ADMIN_TOKEN")

    @model_validator(mode="after")
    def _webhook_is_whole(self) -> Self:
        if self.webhook_url is None:
            return self
        secret = self.webhook_secret.get_secret_value() if self.webhook_secret else ""
        if not self.webhook_url.startswith("https://"):
            raise ValueError("WEBHOOK_URL must begin with https://, Telegram delivers to no other")
        if not SECRET.fullmatch(secret):
            raise ValueError(
                "WEBHOOK_SECRET must be set with WEBHOOK_URL: 16 to 256 of A-Z, a-z, 0-9, _ and -, "
                "as `openssl rand -hex 32` prints them"
            )
        if self.port is None:
            raise ValueError("HTTP_PORT must be set with WEBHOOK_URL: the port to listen on")
        return self

    @model_validator(mode="after")
    def _tokens_are_whole(self) -> Self:
        for name, token in (("API_TOKEN", self.api_token), ("ADMIN_TOKEN", self.admin_token)):
            if token is None:
                continue
            if not TOKEN.fullmatch(token.get_secret_value()):
                raise ValueError(
                    f"{name} must be 16 or more of A-Z, a-z, 0-9, . _ ~ + / and -, as "
                    "`openssl rand -hex 32` prints them"
                )
            if self.port is None:
                raise ValueError(f"HTTP_PORT must be set with {name}: the port to listen on")
        return self


class DocumentSettings(Group):
    """How documents are read and found, whether questions are refined before, and who is asked."""

    refinement: bool | None = Field(None, alias="ENABLE_QUERY_REFINEMENT")
    quotes_model: str | None = Field(None, alias="QUOTES_MODEL")
    max_mb: float = Field(20, alias="DOCUMENT_MAX_MB", gt=0, le=1000)
    embedding_model: str | None = Field(None, alias="EMBEDDING_MODEL")
    embedding_base_url: Url | None = Field(None, alias="EMBEDDING_BASE_URL")
    embedding_api_key: SecretStr | None = Field(None, alias="EMBEDDING_API_KEY")


class PlaceSettings(Group):
    """Where places are searched for; one's own instance comes before the service with a key."""

    searxng_url: Url | None = Field(None, alias="SEARXNG_URL")
    brave_api_key: SecretStr | None = Field(None, alias="BRAVE_API_KEY")

    @property
    def is_set(self) -> bool:
        """Whether places are searched for, instead of links to a search being shown."""
        return self.searxng_url is not None or self.brave_api_key is not None


class DatabaseSettings(Group):
    """The database; by default an SQLite file in the platform's data folder."""

    url: DatabaseUrl = Field(
        default_factory=lambda: SecretStr(
            f"sqlite+aiosqlite:///{user_data_path('sommelier') / 'sommelier.sqlite3'}"
        ),
        alias="DATABASE_URL",
    )
    pool_size: int = Field(10, alias="DATABASE_POOL_SIZE", ge=2)


class TracingSettings(Group):
    """Where traces go, what they may hold, and how long they are kept."""

    public_key: SecretStr | None = Field(None, alias="LANGFUSE_PUBLIC_KEY")
    secret_key: SecretStr | None = Field(None, alias="LANGFUSE_SECRET_KEY")
    base_url: Url = Field("https://cloud.langfuse.com", alias="LANGFUSE_BASE_URL")
    environment: Environment | None = Field(None, alias="LANGFUSE_TRACING_ENVIRONMENT")
    release: str | None = Field(None, alias="LANGFUSE_RELEASE")
    prompt_label: str = Field("production", alias="LANGFUSE_PROMPT_LABEL", min_length=1)
    prompt_seconds: float = Field(60, alias="LANGFUSE_PROMPT_SECONDS", ge=5)
    user_key: SecretStr = Field(SecretStr("sommelier"), alias="TRACE_USER_KEY")
    content: Literal["full", "masked", "none"] = Field("masked", alias="TRACE_CONTENT")
    images: bool = Field(False, alias="TRACE_IMAGES")
    timeout_seconds: float = Field(30, alias="LANGFUSE_TIMEOUT", ge=1, le=120)
    otlp_url: Url | None = Field(None, alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    otlp_headers: Headers = Field((), alias="OTEL_EXPORTER_OTLP_HEADERS")
    retention_days: float = Field(14, alias="TRACE_RETENTION_DAYS", gt=0)
    store_mb: float = Field(500, alias="TRACE_STORE_MB", gt=0)
    stats_retention_days: float = Field(90, alias="STATS_RETENTION_DAYS", ge=8)

    @property
    def langfuse_keys(self) -> tuple[str, str] | None:
        """The public and the secret key of Langfuse; None unless both are set."""
        if self.public_key is None or self.secret_key is None:
            return None
        return self.public_key.get_secret_value(), self.secret_key.get_secret_value()

    @property
    def has_langfuse(self) -> bool:
        """Tell whether the keys of Langfuse are set."""
        return self.langfuse_keys is not None

    @property
    def is_exported(self) -> bool:
        """Tell whether traces are sent anywhere; else they are stored in the database alone."""
        return self.has_langfuse or self.otlp_url is not None


class AccessSettings(Group):
    """Who is an admin, and who is let in."""

    admin_ids: PeopleIds = Field((), alias="ADMIN_IDS")
    mode: Literal["open", "allow_list"] = Field("open", alias="ACCESS")


class BudgetSettings(Group):
    """What a person, and everyone together, may use in a day."""

    person_requests: int | None = Field(None, alias="BUDGET_PERSON_REQUESTS", ge=1)
    person_tokens: int | None = Field(None, alias="BUDGET_PERSON_TOKENS", ge=1)
    person_cost_usd: float | None = Field(None, alias="BUDGET_PERSON_COST_USD", gt=0)
    total_requests: int | None = Field(None, alias="BUDGET_TOTAL_REQUESTS", ge=1)
    total_tokens: int | None = Field(None, alias="BUDGET_TOTAL_TOKENS", ge=1)
    total_cost_usd: float | None = Field(None, alias="BUDGET_TOTAL_COST_USD", gt=0)
    admins_exempt: bool = Field(True, alias="BUDGET_ADMINS_EXEMPT")


class CareSettings(Group):
    """From which age wine is offered, and where help is to be had.

    `region` is the country whose help lines are named, `texts` a file of one's own sentences.
    """

    legal_age: int = Field(18, alias="LEGAL_AGE", ge=16, le=25)
    region: str = Field("", alias="CARE_REGION", pattern=r"^(?:[A-Z]{2})?$")
    texts: Path | None = Field(None, alias="CARE_TEXTS")


class LogSettings(Group):
    """What is logged."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", alias="LOG_LEVEL")


class Settings(BaseModel):
    """What can be set, with the defaults that make an empty machine work."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    telegram: TelegramSettings = TelegramSettings()
    model: ModelSettings = ModelSettings()
    senses: SensesSettings = SensesSettings()
    turn: TurnSettings = TurnSettings()
    updates: UpdateSettings = UpdateSettings()
    http: HttpSettings = HttpSettings()
    documents: DocumentSettings = DocumentSettings()
    places: PlaceSettings = PlaceSettings()
    database: DatabaseSettings = Field(default_factory=DatabaseSettings)
    tracing: TracingSettings = TracingSettings()
    access: AccessSettings = AccessSettings()
    budgets: BudgetSettings = BudgetSettings()
    care: CareSettings = CareSettings()
    log: LogSettings = LogSettings()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never stand in a log, beside what the log knows by its form."""
        values = (
            self.telegram.bot_token,
            self.model.api_key,
            self.senses.vision_api_key,
            self.senses.transcription_api_key,
            self.senses.speech_api_key,
            self.documents.embedding_api_key,
            self.places.brave_api_key,
            self.tracing.secret_key,
            self.http.webhook_secret,
            self.http.api_token,
            self.http.admin_token,
            *(SecretStr(value) for _, value in self.tracing.otlp_headers),
            self.tracing.user_key if "user_key" in self.tracing.model_fields_set else None,
        )
        known = [value.get_secret_value() for value in values if value]
        password = urlsplit(self.database.url.get_secret_value()).password
        return (*known, unquote(password)) if password else tuple(known)


def variables() -> dict[str, tuple[str, str]]:
    """Every variable, with the group and the field that it sets."""
    return {
        str(field.alias): (group, name)
        for group, of in Settings.model_fields.items()
        for name, field in _group(of.annotation).model_fields.items()
    }


def load_settings(env_file: Path | None = Path(".env")) -> Settings:
    """Settings from the environment and `env_file`; the environment wins.

    Raises:
        SettingsError: a value is wrong; one line that names the variable and says what is expected.
    """
    written = dotenv_values(env_file, encoding="utf-8") if env_file else {}
    return settings_of(_given(written) | _given(os.environ))


def settings_of(values: Mapping[str, str]) -> Settings:
    """Settings from the values of variables.

    Raises:
        SettingsError: a value is wrong; one line that names the variable and says what is expected.
    """
    groups, wrong = dict[str, Group](), list[str]()
    for name, field in Settings.model_fields.items():
        try:
            groups[name] = _group(field.annotation).model_validate(values)
        except ValidationError as error:
            wrong.append(describe(error))
    if wrong:
        raise SettingsError("; ".join(wrong))
    return Settings.model_validate(groups)


def describe(error: ValidationError) -> str:
    """One line for every wrong variable, without its value: it may be a secret."""
    lines = []
    for issue in error.errors(include_url=False, include_context=False, include_input=False):
        name = "".join(str(part) for part in issue["loc"][:1])
        problem = issue["msg"].removeprefix("Value error, ")
        lines.append(f"{name}: {problem}" if name else problem)
    return "; ".join(lines)


def _given(values: Mapping[str, str | None]) -> dict[str, str]:
    return {name.upper(): value for name, value in values.items() if value}


def _group(annotation: Any) -> type[Group]:
    return cast("type[Group]", annotation)
