"""Settings, read once from the environment and `.env`, in groups.

A field's alias is the name of its variable, the line below it what the variable does; `sommelier
doctor --settings` prints both. An empty value counts as not set.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from agent.engine.limits import Limits
from agent.text import pattern

LIMITS: Final = Limits()
MODEL_SIZE: Final = pattern(r"(?:^|[^a-z0-9.])(?:[0-9]+x)?(\d{1,4}(?:\.\d{1,3})?)b(?:$|[^a-z0-9])")
"""Finds the size in a model's name, in billions of parameters."""
SMALL_BILLIONS: Final = 7
"""Models of fewer parameters pick wrong tools more often than right ones (docs/local-models.md)."""
USER_ID: Final = pattern(r"[1-9][0-9]{0,15}")
SHARED_ACCOUNTS: Final = frozenset(
    {"777000", "1087968824", "136817688", "1271266957", "489000", "5434988373"}
)
"""Telegram's service messages, anonymous admins, channels, replies, codes, the spam filter."""
RANDOM: Final = "as `openssl rand -hex 32` prints them"


class SettingsError(ValueError):
    """A setting has a wrong value; the message is one line and names the variable."""


def data_folder() -> Path:
    """Return the folder of this user's data."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "sommelier"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "sommelier"


def matches(regex: str, expected: str) -> AfterValidator:
    """Return a validator of texts and secrets; its error says what is expected, not the value."""
    compiled = pattern(regex)

    def check(value: str | SecretStr) -> str | SecretStr:
        text = value.get_secret_value() if isinstance(value, SecretStr) else value
        if not compiled.fullmatch(text):
            raise ValueError(f"must be {expected}")
        return value

    return AfterValidator(check)


def split(value: object) -> object:
    """Return the parts of a text with commas; anything else as it is, `none` as no part."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip() not in ("", "none"))


def split_headers(value: object) -> object:
    """Return the names and values of `name=value,other=value`."""
    pairs = [part.partition("=") for part in value.split(",")] if isinstance(value, str) else []
    if not all(name.strip() and sign for name, sign, _ in pairs):
        raise ValueError("must be headers like name=value,other=value")
    return tuple((name.strip(), unquote(text.strip())) for name, _, text in pairs)


def split_user_ids(value: object) -> object:
    """Return ids of users; refuse names, groups and the accounts in whose name others write."""
    ids = split(value)
    for user_id in ids if isinstance(ids, tuple) else ():
        if not USER_ID.fullmatch(user_id):
            raise ValueError("must be ids of users, like 12345,67890; not @names or ids of groups")
        if user_id in SHARED_ACCOUNTS:
            raise ValueError(
                f"{user_id} is Telegram's own account, in whose name others write (channels, "
                "admins who hide); name the users themselves"
            )
    return ids


def check_time_zone(value: str) -> str:
    """Return the name of a known time zone."""
    try:
        ZoneInfo(value)
    except (KeyError, OSError, ValueError):
        if value != "UTC":
            raise ValueError("must be a time zone like Europe/Vienna, or UTC") from None
    return value


Url = Annotated[
    str,
    AfterValidator(lambda value: value.rstrip("/")),
    matches(r"https?://[^\s/]\S*", "an address that begins with http:// or https://"),
]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(split)]
Ports = Annotated[tuple[int, ...], NoDecode, BeforeValidator(split)]
Headers = Annotated[tuple[tuple[str, SecretStr], ...], NoDecode, BeforeValidator(split_headers)]
UserIds = Annotated[tuple[int, ...], NoDecode, BeforeValidator(split_user_ids)]
BotToken = Annotated[
    SecretStr, matches(r"\d+:[\w-]+", "a token of @BotFather, like 123456789:AAExampleExample")
]
BearerToken = Annotated[
    SecretStr,
    matches("[A-Za-z0-9._~+/-]{16,}=*", f"16 or more of A-Z, a-z, 0-9, . _ ~ + / and -, {RANDOM}"),
]
WebhookSecret = Annotated[
    SecretStr,
    matches("[A-Za-z0-9_-]{16,256}", f"16 to 256 of A-Z, a-z, 0-9, _ and -, {RANDOM}"),
]
DatabaseUrl = Annotated[
    SecretStr,
    matches(
        r"(?s)(sqlite\+aiosqlite:///|postgresql\+psycopg://).*",
        "an address that begins with sqlite+aiosqlite:/// or postgresql+psycopg://",
    ),
]
Environment = Annotated[
    str,
    AfterValidator(lambda value: value if not value.startswith("langfuse") else ""),
    matches("[a-z0-9_-]{1,40}", "1 to 40 of a-z, 0-9, _ and -, and not begin with langfuse"),
]
Country = Annotated[str, matches("([A-Z]{2})?", "a country's two letters, like AT")]


class Group(BaseSettings):
    """Settings that belong together."""

    model_config = SettingsConfigDict(
        extra="ignore",
        frozen=True,
        env_ignore_empty=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )


class TelegramSettings(Group):
    """The bot, and Telegram's server."""

    bot_token: BotToken | None = Field(None, alias="TELEGRAM_BOT_TOKEN")
    """The bot's token, from @BotFather; `sommelier run` needs it."""
    base_url: Url = Field("https://api.telegram.org", alias="TELEGRAM_BASE_URL")
    """The Bot API; change it for a Bot API server of your own."""
    messages_per_second: int = Field(30, alias="TELEGRAM_MESSAGES_PER_SECOND", ge=0)
    """Messages this process sends in a second; its share of 30 with replicas, 0 for no limit."""

    @property
    def token(self) -> str:
        """Return the bot's token.

        Raises:
            SettingsError: there is none.
        """
        if self.bot_token is None:
            raise SettingsError(
                "TELEGRAM_BOT_TOKEN is not set: set it to what @BotFather gives you"
            )
        return self.bot_token.get_secret_value()


class ModelSettings(Group):
    """The language models; `name` is asked first, then those of `fallback_names` in their order."""

    api_key: SecretStr | None = Field(None, alias="OPENAI_API_KEY")
    """The key of the model's server; without key and address there is no model."""
    base_url: Url | None = Field(None, alias="OPENAI_BASE_URL")
    """Any server that speaks OpenAI's API, like http://localhost:11434/v1; default: OpenAI."""
    name: str = Field("gpt-4o", alias="LLM_MODEL")
    """The model that answers."""
    fallback_names: Names = Field((), alias="LLM_FALLBACK_MODELS")
    """Models of that server to ask when the first fails, with commas."""
    response_mode: Literal["prompt", "json_object", "json_schema"] | None = Field(
        None, alias="LLM_RESPONSE_MODE"
    )
    """How a structured answer is asked for; default: json_object, of small models json_schema."""
    prices: str | None = Field(None, alias="LLM_PRICES")
    """US dollars per million tokens, as JSON: {"my-model": {"prompt": 1, "completion": 2}}."""
    timeout_seconds: float = Field(60, alias="LLM_TIMEOUT_SECONDS", gt=0, le=600)
    """Seconds that one request to the model may take."""
    context_tokens: int | None = Field(None, alias="LLM_CONTEXT_TOKENS", ge=2048)
    """Tokens the model reads at most; the oldest messages are left out."""
    profile: Literal["full", "small"] | None = Field(None, alias="LLM_PROFILE")
    """full: the model calls tools; small: wines are searched first; default: by the name."""
    local_ports: Ports = Field((11434, 1234, 8080, 8000), alias="LLM_LOCAL_PORTS")
    """Where a model server is looked for on this machine while none is set; none: nowhere."""

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


def prefixed(prefix: str) -> Callable[[str], str]:
    """Return a function that names the variables of a group by its prefix."""
    return lambda field: f"{prefix}_{field.upper()}"


class ServedModel(Group):
    """A model for one purpose, on a server of its own or on that of OPENAI_BASE_URL."""

    model: str | None = None
    """The model; without it this is switched off."""
    base_url: Url | None = None
    """The model's server, if it is not that of OPENAI_BASE_URL."""
    api_key: SecretStr | None = None
    """The key of that server."""

    @property
    def has_server(self) -> bool:
        """Tell whether the model has a server of its own."""
        return self.base_url is not None or self.api_key is not None


class VisionSettings(ServedModel, alias_generator=prefixed("VISION")):
    """The model that reads pictures."""


class TranscriptionSettings(ServedModel, alias_generator=prefixed("TRANSCRIPTION")):
    """The model that writes voice messages down (/audio/transcriptions)."""


class SpeechSettings(ServedModel, alias_generator=prefixed("SPEECH")):
    """The model that reads answers aloud (/audio/speech)."""

    voice: str = "alloy"
    """The voice that reads."""


class EmbeddingSettings(ServedModel, alias_generator=prefixed("EMBEDDING")):
    """The model that makes vectors, by which documents are found; onnx:NAME runs one here."""


class TurnSettings(Group):
    """The limits of one turn."""

    structured_output_max_retries: int = Field(
        LIMITS.structured_output_max_retries, alias="STRUCTURED_OUTPUT_MAX_RETRIES", ge=0, le=10
    )
    """How often an invalid answer is asked for again, with feedback on what is wrong."""
    cost_usd: float = Field(LIMITS.cost_usd, alias="TURN_MAX_COST_USD", gt=0)
    """US dollars that one turn may cost."""
    seconds: float = Field(LIMITS.seconds, alias="TURN_TIMEOUT_SECONDS", gt=0)
    """Seconds that one turn may take."""
    answer_tokens: int = Field(LIMITS.answer_tokens, alias="LLM_MAX_TOKENS", ge=64)
    """Tokens an answer may have; one that is cut off gets more."""

    @property
    def limits(self) -> Limits:
        """Return the limits as the engine takes them."""
        return Limits(**self.model_dump())


class UpdateSettings(Group):
    """How updates become turns."""

    burst_seconds: float = Field(0.8, alias="BURST_SECONDS", ge=0, le=10)
    """Seconds to wait for the rest of an album; with 0 every message is answered by itself."""
    max_tries: int = Field(3, alias="UPDATE_MAX_TRIES", ge=1)
    """How often an update that fails is tried; `sommelier updates` shows those given up."""
    shutdown_seconds: float = Field(20, alias="SHUTDOWN_SECONDS", ge=0)
    """Seconds that turns have to end when the bot is stopped; the rest is resumed later."""
    time_zone: Annotated[str, AfterValidator(check_time_zone)] = Field("UTC", alias="TIME_ZONE")
    """The time zone in which users are reminded of their own bottles, 10 to 20 o'clock."""


class HttpSettings(Group):
    """What is served over HTTP: the webhook, metrics, the API, the page of admins."""

    webhook_url: Url | None = Field(None, alias="WEBHOOK_URL")
    """The public https address that Telegram delivers to; without it the bot polls."""
    webhook_secret: WebhookSecret | None = Field(None, alias="WEBHOOK_SECRET")
    """The secret that Telegram sends along."""
    host: str = Field("127.0.0.1", alias="HTTP_HOST")
    """The address to listen on."""
    port: int | None = Field(None, alias="HTTP_PORT", ge=0, le=65535)
    """The port to listen on; without it nothing is served."""
    api_token: BearerToken | None = Field(None, alias="API_TOKEN")
    """Serves the API (docs/wines-and-documents.md) to those who send it as a bearer token."""
    admin_token: BearerToken | None = Field(None, alias="ADMIN_TOKEN")
    """Serves the page of admins at /admin to those who give it."""

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.webhook_url and not self.webhook_url.startswith("https://"):
            raise ValueError("WEBHOOK_URL: must begin with https://, Telegram delivers to no other")
        if self.webhook_url and not self.webhook_secret:
            raise ValueError("WEBHOOK_SECRET: must be set with WEBHOOK_URL")
        served = (self.webhook_url, self.api_token, self.admin_token)
        if any(served) and self.port is None:
            raise ValueError(
                "HTTP_PORT: must be set with WEBHOOK_URL, API_TOKEN or ADMIN_TOKEN, to listen on"
            )
        return self


class DocumentSettings(Group):
    """How documents are searched and quoted."""

    refinement: bool | None = Field(None, alias="ENABLE_QUERY_REFINEMENT")
    """Rewrite questions before the search; true, false, or default: as each request asks."""
    quotes_model: str | None = Field(None, alias="QUOTES_MODEL")
    """A cheaper model of that server, asked first where one document is clearly the best."""


class PlaceSettings(Group):
    """Where places are searched for; one's own instance comes before the service with a key."""

    searxng_url: Url | None = Field(None, alias="SEARXNG_URL")
    """A SearXNG instance of your own that allows the json format."""
    brave_api_key: SecretStr | None = Field(None, alias="BRAVE_API_KEY")
    """A key of the Brave Search API; with neither, users get links to search with."""


class ToolSettings(Group):
    """Further tools for the model."""

    mcp_servers: SecretStr | None = Field(None, alias="MCP_SERVERS")
    """Servers of the Model Context Protocol, as JSON: {"NAME": {"command": ..., "args": [...]}}."""


class DatabaseSettings(Group):
    """The database."""

    url: DatabaseUrl = Field(
        default_factory=lambda: SecretStr(
            f"sqlite+aiosqlite:///{data_folder() / 'sommelier.sqlite3'}"
        ),
        alias="DATABASE_URL",
    )
    """sqlite+aiosqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/NAME."""


class TracingSettings(Group):
    """Where traces go, what they may hold, and how long they are kept."""

    public_key: SecretStr | None = Field(None, alias="LANGFUSE_PUBLIC_KEY")
    """Langfuse's public key; with both keys traces go there, else they stay in the database."""
    secret_key: SecretStr | None = Field(None, alias="LANGFUSE_SECRET_KEY")
    """Langfuse's secret key."""
    base_url: Url = Field("https://cloud.langfuse.com", alias="LANGFUSE_BASE_URL")
    """The region that the keys belong to, or your own server."""
    environment: Environment | None = Field(None, alias="LANGFUSE_TRACING_ENVIRONMENT")
    """What tells deployments apart in Langfuse, like staging."""
    prompt_label: str = Field("production", alias="LANGFUSE_PROMPT_LABEL")
    """The label of the prompts that are used (docs/admin.md)."""
    user_key: SecretStr = Field(SecretStr("sommelier"), alias="TRACE_USER_KEY")
    """The key of the hashes that stand for users and chats; choose a secret of your own."""
    content: Literal["full", "masked", "none"] = Field("masked", alias="TRACE_CONTENT")
    """What traces hold of messages and answers; masked: without personal data."""
    otlp_url: Url | None = Field(None, alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    """Without Langfuse: any backend of OpenTelemetry's protocol, without /v1/traces."""
    otlp_headers: Headers = Field((), alias="OTEL_EXPORTER_OTLP_HEADERS")
    """Headers for that backend, as name=value,other=value."""
    retention_days: float = Field(14, alias="TRACE_RETENTION_DAYS", gt=0)
    """Days that traces stay in the database."""
    stats_retention_days: float = Field(90, alias="STATS_RETENTION_DAYS", ge=8)
    """Days that the numbers of turns, and ratings of them, stay in the database."""

    @property
    def langfuse_keys(self) -> tuple[str, str] | None:
        """Return the public and the secret key of Langfuse; None unless both are set."""
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

    admin_ids: UserIds = Field((), alias="ADMIN_IDS")
    """The Telegram ids of those who may use /stats, /trace, /allow, /block and /broadcast."""
    mode: Literal["open", "allow_list"] = Field("open", alias="ACCESS")
    """open: everybody but the blocked; allow_list: only whom an admin let in."""


class BudgetSettings(Group):
    """What a user, and all users together, may use in a day (UTC). Admins are exempt."""

    person_requests: int | None = Field(None, alias="BUDGET_PERSON_REQUESTS", ge=1)
    """Requests to models in a day, for each user."""
    person_cost_usd: float | None = Field(None, alias="BUDGET_PERSON_COST_USD", gt=0)
    """US dollars in a day, for each user."""
    total_requests: int | None = Field(None, alias="BUDGET_TOTAL_REQUESTS", ge=1)
    """Requests to models in a day, for all together."""
    total_cost_usd: float | None = Field(None, alias="BUDGET_TOTAL_COST_USD", gt=0)
    """US dollars in a day, for all together."""


class CareSettings(Group):
    """From which age wine is offered, and where help is to be had (docs/admin.md)."""

    legal_age: int = Field(18, alias="LEGAL_AGE", ge=16, le=25)
    """The age in years from which wine is offered."""
    region: Country = Field("", alias="CARE_REGION")
    """The country whose help lines are named in a crisis; default: by the user's language."""
    texts: Path | None = Field(None, alias="CARE_TEXTS")
    """A TOML file with sentences and help lines of your own, like agent/care/help.toml."""


class LogSettings(Group):
    """What is logged."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", alias="LOG_LEVEL")
    """How much is logged."""


class Variable(NamedTuple):
    """A variable, its value, and what it does."""

    name: str
    value: object
    description: str


class Settings(BaseModel):
    """All settings, with the defaults that make an empty machine work."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    telegram: TelegramSettings = Field(default_factory=TelegramSettings)
    model: ModelSettings = Field(default_factory=ModelSettings)
    vision: VisionSettings = Field(default_factory=VisionSettings)
    transcription: TranscriptionSettings = Field(default_factory=TranscriptionSettings)
    speech: SpeechSettings = Field(default_factory=SpeechSettings)
    embedding: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    turn: TurnSettings = Field(default_factory=TurnSettings)
    updates: UpdateSettings = Field(default_factory=UpdateSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)
    documents: DocumentSettings = Field(default_factory=DocumentSettings)
    places: PlaceSettings = Field(default_factory=PlaceSettings)
    tools: ToolSettings = Field(default_factory=ToolSettings)
    database: DatabaseSettings = Field(default_factory=DatabaseSettings)
    tracing: TracingSettings = Field(default_factory=TracingSettings)
    access: AccessSettings = Field(default_factory=AccessSettings)
    budgets: BudgetSettings = Field(default_factory=BudgetSettings)
    care: CareSettings = Field(default_factory=CareSettings)
    log: LogSettings = Field(default_factory=LogSettings)

    def variables(self) -> Iterator[Variable]:
        """Return every variable, in the order of the groups."""
        for _, group in self:
            for name, field in type(group).model_fields.items():
                yield Variable(str(field.alias), getattr(group, name), field.description or "")

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return what must never be in a log, beside what the log knows by its form."""
        secrets = [
            value
            for name, value, _ in self.variables()
            if name not in ("DATABASE_URL", "TRACE_USER_KEY")
        ]
        secrets += [value for _, value in self.tracing.otlp_headers]
        if "user_key" in self.tracing.model_fields_set:
            secrets.append(self.tracing.user_key)
        known = [value.get_secret_value() for value in secrets if isinstance(value, SecretStr)]
        password = urlsplit(self.database.url.get_secret_value()).password
        return (*known, unquote(password)) if password else tuple(known)


def load_settings(
    env_file: Path | None = Path(".env"), values: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings of `values`, else of the environment, else of `env_file`.

    Raises:
        SettingsError: a value is wrong; one line that names the variable and says what is right.
    """
    groups, wrong = dict[str, Group](), list[str]()
    for name, field in Settings.model_fields.items():
        group: Any = field.annotation
        try:
            groups[name] = group(_env_file=env_file, **(values or {}))
        except ValidationError as error:
            wrong.append(describe(error))
    if wrong:
        raise SettingsError("; ".join(wrong))
    return Settings.model_validate(groups)


def describe(error: ValidationError) -> str:
    """Return one line for every wrong variable, without its value: it may be a secret."""
    lines = []
    for issue in error.errors(include_url=False, include_context=False, include_input=False):
        name = "".join(str(part) for part in issue["loc"][:1])
        problem = issue["msg"].removeprefix("Value error, ").replace("Input should", "must", 1)
        lines.append(f"{name}: {problem}" if name else problem)
    return "; ".join(lines)
