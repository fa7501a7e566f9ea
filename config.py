"""Read the settings from the environment and `.env`.

The variable of a field is the field's name in capitals. `sommelier doctor --settings` prints all
variables with the docstrings of their fields. An empty value counts as not set.
"""

import base64
import hmac
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self
from urllib.parse import unquote, urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    Json,
    PositiveFloat,
    PositiveInt,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from agent.engine.messages import ResponseMode
from agent.engine.run import Limits, Price
from agent.servers import OPENAI_URL
from agent.text import pattern
from bot.telegram_accounts import SHARED_ACCOUNTS

LIMITS: Final = Limits()
MODEL_SIZE: Final = pattern(
    r"(?:^|[^a-z0-9.])(?:[0-9]+x)?(\d{1,4}(?:\.\d{1,3})?)b(?:$|[^a-z0-9])"
)
"""Matches the size in a model's name, in billions of parameters.

In `llama3.2:3b` it is 3, in `8x7b-instruct` 7.
"""
SMALL_MODEL_BILLIONS: Final = 7
"""Smaller models call the wrong tools more often than the right ones (docs/local-models.md)."""
USER_INFO: Final = pattern(r"://[^/?#\s]*@")
"""The user and the password in an address: "://ada:pw@" in "https://ada:pw@host/path"."""
PORT_AND_PATH: Final = pattern(r"(:\d+)?([/?#].*)?\z")
"""What follows the host in an address: ":8080/path"."""


class SettingsError(ValueError):
    """A setting has an invalid value. The message is one line, and names the variable."""


class Server(NamedTuple):
    """A server with OpenAI's API. Without a URL it is OpenAI's own server."""

    base_url: str | None = None
    api_key: SecretStr | None = None


def default_database() -> SecretStr:
    """Return the URL of an SQLite file in the data folder of this user."""
    data_folder = Path.home() / ".local" / "share"
    chosen_folder = os.environ.get("XDG_DATA_HOME")
    if chosen_folder:
        data_folder = Path(chosen_folder)
    file = data_folder / "sommelier" / "sommelier.sqlite3"
    return SecretStr(f"sqlite+aiosqlite:///{file}")


def matches(regex: str, expected: str) -> AfterValidator:
    """Return a validator of texts and secrets.

    The error of the validator says what is expected. It does not repeat the value, which may be a
    secret.
    """
    compiled = pattern(f"(?s){regex}")

    def check(value: str | SecretStr) -> str | SecretStr:
        text = value
        if isinstance(text, SecretStr):
            text = text.get_secret_value()
        if not compiled.fullmatch(text):
            raise ValueError(f"must be {expected}")
        return value

    return AfterValidator(check)


def split(value: object) -> object:
    """Return the parts of a text between commas, without empty ones and `none`.

    A value that is not a text, such as a default, is returned unchanged.
    """
    if not isinstance(value, str):
        return value
    parts = []
    for text in value.split(","):
        part = text.strip()
        if part not in ("", "none"):
            parts.append(part)
    return tuple(parts)


def strip_slashes(url: str) -> str:
    """Return an address without slashes at its end, so that a path can be appended."""
    return url.rstrip("/")


def check_person(user_id: int) -> int:
    """Return the id of a person. Raise ValueError for that of a group or a shared account."""
    if user_id <= 0 or user_id in SHARED_ACCOUNTS:
        raise ValueError(
            "must be the id of a person, not of a group or Telegram's own account"
        )
    return user_id


def check_environment(name: str) -> str:
    """Return the name of an environment. Raise ValueError for one that Langfuse reserves."""
    if name.startswith("langfuse"):
        raise ValueError("must not begin with langfuse")
    return name


Url = Annotated[
    str,
    AfterValidator(strip_slashes),
    matches(r"https?://[^\s/]\S*", "an address that begins with http:// or https://"),
]
LangfuseEnvironment = Annotated[
    str,
    matches("[a-z0-9_-]{1,40}", "1 to 40 of a-z, 0-9, _ and -"),
    AfterValidator(check_environment),
]
HttpsUrl = Annotated[Url, matches("https://.*", "an address that begins with https://")]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(split)]
Numbers = Annotated[tuple[int, ...], NoDecode, BeforeValidator(split)]
PersonIds = Annotated[
    tuple[Annotated[int, AfterValidator(check_person)], ...],
    NoDecode,
    BeforeValidator(split),
]
Token = Annotated[
    SecretStr,
    matches(
        "[A-Za-z0-9_-]{16,256}",
        "16 to 256 of A-Z, a-z, 0-9, _ and -; `openssl rand -hex 32`",
    ),
]
DatabaseUrl = Annotated[
    SecretStr,
    matches(
        r"(sqlite\+aiosqlite:///|postgresql\+psycopg://).*",
        "an address that begins with sqlite+aiosqlite:/// or postgresql+psycopg://",
    ),
]


class Settings(BaseSettings):
    """All settings. With the defaults, the bot runs on a machine without any servers."""

    model_config = SettingsConfigDict(
        extra="ignore",
        frozen=True,
        env_ignore_empty=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    # Telegram
    telegram_bot_token: SecretStr | None = None
    """The bot's token, from @BotFather; `sommelier run` needs it."""
    telegram_base_url: Url = "https://api.telegram.org"
    """The Bot API; change it for a Bot API server of your own."""
    telegram_messages_per_second: int = Field(30, ge=0)
    """Messages that this process sends in a second: its share of 30 with replicas; 0: no limit."""

    # The language models
    openai_api_key: SecretStr | None = None
    """The key of the model's server; without key and address there is no model."""
    openai_base_url: Url | None = None
    """Any server that speaks OpenAI's API, like http://localhost:11434/v1; default: OpenAI."""
    llm_model: str = "gpt-4o"
    """The model that answers."""
    llm_fallback_models: Names = ()
    """Models of that server that are asked if the first one fails, separated by commas."""
    llm_response_mode: ResponseMode | None = None
    """How a structured answer is requested; default: json_object, for small models json_schema."""
    llm_prices: Json[dict[str, Price]] = Field({}, validate_default=False)
    """US dollars per million tokens, as JSON: {"my-model": {"prompt": 1, "completion": 2}}."""
    llm_timeout_seconds: float = Field(60, gt=0, le=600)
    """Seconds that one request to the model may take; a turn may take twice as long, or 120."""
    llm_profile: Literal["full", "small"] | None = None
    """full: the model calls tools; small: wines are searched first; default: by the name."""
    llm_local_ports: Numbers = (11434, 1234, 8080, 8000)
    """Ports of this machine where a model server is looked for if none is set; none: no search."""

    # Models for pictures, speech and embeddings
    vision_model: str | None = None
    """The model that reads pictures; without it users are asked to write."""
    transcription_model: str | None = None
    """The model that transcribes voice messages (/audio/transcriptions)."""
    speech_model: str | None = None
    """The model that reads answers aloud (/audio/speech)."""
    embedding_model: str | None = None
    """The embedding model for the search in documents."""
    second_base_url: Url | None = None
    """The server of these models, if it differs from OPENAI_BASE_URL."""
    second_api_key: SecretStr | None = None
    """The key of that server, which never gets OPENAI_API_KEY."""

    # Turns
    structured_output_max_retries: int = Field(
        LIMITS.structured_output_max_retries, ge=0, le=10
    )
    """How often an invalid answer is requested again, with feedback on its errors."""
    turn_max_cost_usd: PositiveFloat = LIMITS.cost_usd
    """US dollars that one turn may cost."""
    join_seconds: float = Field(0.8, ge=0, le=10)
    """Seconds to wait for the rest of an album; with 0 every message is answered by itself."""
    update_max_tries: PositiveInt = 3
    """How often an update that fails is tried; `sommelier updates` lists those set aside."""

    # HTTP: the webhook, metrics, the API, the admin page
    webhook_url: HttpsUrl | None = None
    """The public https address that Telegram delivers to; without it the bot polls."""
    http_host: str = "127.0.0.1"
    """The address to listen on."""
    http_port: int | None = Field(None, ge=0, le=65535)
    """The port to listen on; without it nothing is served."""
    api_token: Token | None = None
    """Serves the API (docs/wines-and-documents.md) to clients with this bearer token."""
    admin_token: Token | None = None
    """Serves the admin page at /admin to those who enter this token."""
    click_url: HttpsUrl | None = None
    """The public https address of this server; with it, presses of link buttons are counted."""

    # The shop, documents, places, further tools
    shop_name: str = Field("", max_length=100)
    """The name of your shop or restaurant, above the greeting."""
    enable_find: bool = True
    """Whether users can look for places: /find, and the model's tool for it."""
    enable_query_refinement: bool | None = None
    """Rewrite questions before the search: true or false; default: each request decides."""
    quotes_model: str | None = None
    """A cheaper model of the same server that is asked for quotes first."""
    searxng_url: Url | None = None
    """A SearXNG instance of your own that allows the json format; it finds places."""
    brave_api_key: SecretStr | None = None
    """A key of the Brave Search API; with neither, users get links to search with."""
    mcp_servers: SecretStr | None = None
    """Servers of the Model Context Protocol, as JSON: {"NAME": {"command": ..., "args": [...]}}."""

    # The database
    database_url: DatabaseUrl = Field(default_factory=default_database)
    """sqlite+aiosqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/NAME."""
    database_pool_size: int = Field(10, ge=1, le=100)
    """Connections that a process keeps to Postgres."""

    # Traces
    langfuse_public_key: SecretStr | None = None
    """Langfuse's public key; with both keys traces go there, else they stay in the database."""
    langfuse_secret_key: SecretStr | None = None
    """Langfuse's secret key."""
    langfuse_base_url: Url = "https://cloud.langfuse.com"
    """The region that the keys belong to, or your own server."""
    langfuse_tracing_environment: LangfuseEnvironment = "default"
    """Keeps installations apart that share a project: staging, production."""
    langfuse_release: str = ""
    """What Langfuse shows as the release; by default the version of the sommelier."""
    otel_exporter_otlp_endpoint: Url | None = None
    """Without Langfuse: any backend of OpenTelemetry's protocol, without /v1/traces."""
    otel_exporter_otlp_headers: SecretStr | None = None
    """Headers for that backend, as name=value,other=value."""
    trace_user_key: SecretStr = SecretStr("sommelier")
    """The key of the hashes that stand for users and chats; choose a secret of your own."""
    trace_content: Literal["full", "masked", "none"] = "masked"
    """What traces contain of messages and answers; masked: no personal data."""
    trace_retention_days: PositiveFloat = 14
    """Days that traces stay in the database."""
    history_days: PositiveFloat = 365
    """Days that the messages of conversations stay, if their users do not delete them before."""

    # Admins, access, budgets
    admin_ids: PersonIds = ()
    """The Telegram ids of those who may use /stats, /trace, /allow, /block and /broadcast."""
    staff_chat_id: int | None = None
    """The chat, of a person or a group, where the staff of the shop answer those who ask for it."""
    access: Literal["open", "allow_list"] = "open"
    """open: all users except blocked ones; allow_list: only users whom an admin has allowed."""
    budget_person_requests: PositiveInt | None = None
    """Requests to models in a day (UTC) for each user except admins."""
    budget_total_cost_usd: PositiveFloat | None = None
    """US dollars in a day (UTC), for all users together."""

    # Safety (docs/admin.md), logs
    legal_age: int = Field(18, ge=16, le=25)
    """The age in years from which wine is offered."""
    help_texts: Path | None = None
    """A TOML file with your own help lines and sentences, as docs/admin.md says."""
    help_country: str = Field("", pattern=r"^([A-Z]{2})?$")
    """The country whose help lines are shown first, as an ISO 3166 code such as AT."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """How much is logged."""

    @model_validator(mode="after")
    def _require_port(self) -> Self:
        served = (self.webhook_url, self.api_token, self.admin_token, self.click_url)
        if any(served) and self.http_port is None:
            raise ValueError(
                "HTTP_PORT: must be set with WEBHOOK_URL, API_TOKEN, ADMIN_TOKEN or CLICK_URL, to "
                "listen on"
            )
        return self

    @property
    def only_allowed(self) -> bool:
        """Return whether only users whom an admin has allowed have access."""
        return self.access == "allow_list"

    @property
    def server(self) -> Server | None:
        """Return the server of the language models, or None if neither URL nor key is set."""
        server = Server(self.openai_base_url, self.openai_api_key)
        if not any(server):
            return None
        return server

    @property
    def second_server(self) -> Server | None:
        """Return the server of the other models. By default it is that of the language models."""
        server = Server(self.second_base_url, self.second_api_key)
        if not any(server):
            return self.server
        return server

    @property
    def model_hosts(self) -> list[str]:
        """Return the hosts of the models that read what users send, without repetitions."""
        other_models = (
            self.vision_model,
            self.transcription_model,
            self.speech_model,
            self.embedding_model,
        )
        servers = [self.server]
        if any(other_models):
            servers.append(self.second_server)
        hosts: list[str] = []
        for server in servers:
            if server is not None:
                host = urlsplit(server.base_url or OPENAI_URL).hostname
                hosts.append(host or "")
        return list(dict.fromkeys(hosts))

    @property
    def is_small(self) -> bool:
        """Return whether the model has the small profile.

        If no profile is set, the name of the model decides. `qwen2.5:1.5b` is small. `qwen2.5:14b`
        and a model without a size in its name are not.
        """
        if self.llm_profile is not None:
            return self.llm_profile == "small"
        size = MODEL_SIZE.search(self.llm_model.lower())
        return size is not None and float(size[1]) < SMALL_MODEL_BILLIONS

    @property
    def response_mode(self) -> ResponseMode:
        """Return the configured response mode. By default, small models have the strict mode."""
        if self.llm_response_mode is not None:
            return self.llm_response_mode
        if self.is_small:
            return "json_schema"
        return "json_object"

    @property
    def turn_seconds(self) -> float:
        """Return how many seconds a turn may take.

        The seconds suffice for two requests: one that calls a tool, and one that answers.
        """
        return max(LIMITS.seconds, 2 * self.llm_timeout_seconds)

    @property
    def webhook_secret(self) -> str:
        """Return the secret that Telegram sends to the webhook, or "" without a bot's token."""
        if self.telegram_bot_token is None:
            return ""
        return self._derive_secret("webhook")

    @property
    def click_secret(self) -> SecretStr:
        """Return the key that signs counted links."""
        return SecretStr(self._derive_secret("clicks"))

    def _derive_secret(self, purpose: str) -> str:
        """Return a secret that follows from the bot's token, so that nobody has to set it."""
        token = ""
        if self.telegram_bot_token is not None:
            token = self.telegram_bot_token.get_secret_value()
        return hmac.digest(token.encode(), purpose.encode(), "sha256").hex()

    @property
    def langfuse_keys(self) -> tuple[str, str] | None:
        """Return the public and the secret key of Langfuse, or None unless both are set."""
        public = self.langfuse_public_key
        secret = self.langfuse_secret_key
        if public is None or secret is None:
            return None
        return public.get_secret_value(), secret.get_secret_value()

    @property
    def sends_traces(self) -> bool:
        """Return whether traces are sent to a server. Otherwise they are only stored."""
        return bool(self.langfuse_keys or self.otel_exporter_otlp_endpoint)

    @property
    def otlp_headers(self) -> dict[str, str]:
        """Return the headers for the OpenTelemetry backend, by name."""
        if self.otel_exporter_otlp_headers is None:
            return {}
        text = self.otel_exporter_otlp_headers.get_secret_value()
        headers: dict[str, str] = {}
        for pair in text.split(","):
            name, _, value = pair.strip().partition("=")
            headers[name] = unquote(value)
        return headers

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the values that must never be logged."""
        secrets: list[str] = []
        urls = [self.database_url.get_secret_value()]
        # A Pydantic model yields its fields, each as a name and a value.
        for name, value in self:
            if isinstance(value, SecretStr):
                secrets.append(self._secret_part_of(name, value))
            elif isinstance(value, str) and name.endswith(("_url", "_endpoint")):
                urls.append(value)
        secrets += self.otlp_headers.values()
        secrets.append(self.webhook_secret)
        for url in urls:
            secrets += _user_info_of(url)
        return tuple(filter(None, secrets))

    def _secret_part_of(self, name: str, value: SecretStr) -> str:
        """Return the value of a setting if all of it is secret, or else ""."""
        # Only the user and the password in the database's address are secret.
        if name == "database_url":
            return ""
        # The default key is an ordinary word.
        if name == "trace_user_key" and name not in self.model_fields_set:
            return ""
        return value.get_secret_value()


def _user_info_of(url: str) -> list[str]:
    """Return the user and the password in an address, in all forms in which a server may show them.

    A short password may be an ordinary word. Such a word is not hidden alone, but in the forms of
    an address (`ada:pw@host`) and of a header (`Basic YWRhOnB3`).
    """
    match = USER_INFO.search(url)
    if match is None:
        return []
    user_info = match[0].removeprefix("://").removesuffix("@")
    behind_user_info = url[match.end() :]
    host = PORT_AND_PATH.sub("", behind_user_info)
    user, _, password = user_info.partition(":")
    plain = f"{unquote(user)}:{unquote(password)}"
    secret = password or user
    encoded = base64.b64encode(plain.encode()).decode()
    return [
        user_info,
        plain,
        secret,
        unquote(secret),
        f"{user_info}@{host}",
        f"{plain}@{host}",
        f"://{user_info}@{host}",
        f"Basic {encoded}",
        encoded,
    ]


def hide_user_info(text: str) -> str:
    """Return a text without the users and passwords in its addresses."""
    return USER_INFO.sub("://***@", text)


def load_settings(
    env_file: Path | None = Path(".env"), values: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings: each from `values`, or from the environment, or from `env_file`.

    Raises:
        SettingsError: a value is invalid. The message names the variable and what is expected.
    """
    fields: dict[str, Any] = {}
    for name, value in (values or {}).items():
        fields[name.lower()] = value
    try:
        return Settings(_env_file=env_file, **fields)
    except ValidationError as error:
        raise SettingsError(describe(error)) from None


def describe(error: ValidationError) -> str:
    """Return a line that lists all invalid variables.

    The line has no values, which may be secret.
    """
    issues = error.errors(include_url=False, include_context=False, include_input=False)
    problems: list[str] = []
    for issue in issues:
        # Pydantic's "Input should be greater than 0" becomes "must be greater than 0".
        message = issue["msg"].removeprefix("Value error, ")
        message = message.replace("Input should", "must", 1)
        place = _name_place(issue["loc"])
        problems.append(": ".join([*place, message]))
    return "; ".join(problems)


def _name_place(location: Sequence[str | int]) -> list[str]:
    """Return the variable of an error and the place in its value, such as ["LLM_PRICES", "a.b"].

    An error about several settings has no location.
    """
    if not location:
        return []
    name, *path = [str(part) for part in location]
    if name in Settings.model_fields:
        name = name.upper()
    if not path:
        return [name]
    return [name, ".".join(path)]
