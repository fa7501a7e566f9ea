"""Settings: read once, each named by its variable."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from config import Server, SettingsError, load_settings

SECRET = "a-secret_of-16-or-more"
HOOK = {"WEBHOOK_URL": "https://bot.example.com", "HTTP_PORT": "8080"}


def test_the_environment_wins_over_the_file_and_an_empty_value_counts_as_not_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "some.env"
    file.write_text(
        "LLM_MODEL=from-file\nllm_timeout_seconds=7\nHTTP_HOST=0.0.0.0\nHTTP_PORT=\n"
    )
    monkeypatch.setenv("LLM_MODEL", "from-environment")
    monkeypatch.setenv("HTTP_HOST", "")
    settings = load_settings(file)
    assert (settings.llm_model, settings.llm_timeout_seconds) == ("from-environment", 7)
    assert (settings.http_host, settings.http_port) == ("0.0.0.0", None)


def test_an_error_names_every_wrong_variable_in_one_line_and_shows_no_value() -> None:
    wrong = {
        "LLM_TIMEOUT_SECONDS": "must be a valid number",
        "ACCESS": "must be 'open' or 'allow_list'",
        "ADMIN_IDS": "0: must be a valid integer",
        "API_TOKEN": "must be 16 to 256 of",
        "DATABASE_URL": "must be an address that begins with sqlite",
        "LLM_PRICES": "Invalid JSON",
        "WEBHOOK_URL": "must be an address that begins with http",
    }
    with pytest.raises(SettingsError) as raised:
        load_settings(None, dict.fromkeys(wrong, "s3cret s3cret"))
    message = str(raised.value)
    assert [
        name for name, problem in wrong.items() if f"{name}: {problem}" not in message
    ] == []
    assert "\n" not in message
    assert "s3cret" not in message


@pytest.mark.parametrize(
    "ids", ["@ada", "12345;67890", "-1001234567890", "0", "12345,777000"]
)
def test_ids_that_no_admin_has_are_refused(ids: str) -> None:
    with pytest.raises(SettingsError, match=r"^ADMIN_IDS: "):
        load_settings(None, {"ADMIN_IDS": ids})


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"HTTP_PORT": ""}, "HTTP_PORT: must be set with WEBHOOK_URL"),
        ({"WEBHOOK_URL": "http://bot.example.com"}, "WEBHOOK_URL: must be .* https://"),
    ],
)
def test_a_webhook_needs_https_and_a_port(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], problem: str
) -> None:
    for name, value in (HOOK | changed).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=problem):
        load_settings(None)


def test_all_secrets_that_are_set_are_kept_out_of_logs() -> None:
    more = {
        "TELEGRAM_BOT_TOKEN": "42:token",
        "SECOND_API_KEY": "key-1",
        "API_TOKEN": SECRET,
        "DATABASE_URL": "postgresql+psycopg://me:pass%20word@localhost/x",
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b",
    }
    settings = load_settings(None, HOOK | more)
    hook = settings.webhook_secret
    assert len(hook) == 64
    assert set(settings.secrets) == {
        *("42:token", hook, "key-1", SECRET),
        *("pass word", "a b", "api-key=a%20b"),
        *("pass%20word", "me:pass word", "me:pass%20word", "bWU6cGFzcyB3b3Jk"),
        *(
            "me:pass word@localhost",
            "me:pass%20word@localhost",
            "://me:pass%20word@localhost",
        ),
        "Basic bWU6cGFzcyB3b3Jk",
    }


def test_the_key_of_one_server_is_given_to_no_other() -> None:
    first, second = (
        {"OPENAI_API_KEY": "sk-1"},
        {"SECOND_BASE_URL": "http://second.example/"},
    )
    settings = load_settings(None, first | second)
    assert settings.server == Server(None, SecretStr("sk-1"))
    assert settings.second_server == Server("http://second.example", None)
    assert load_settings(None, first).second_server == Server(None, SecretStr("sk-1"))
    alone = load_settings(None, {"SECOND_API_KEY": "sk-2"})
    assert (alone.server, alone.second_server) == (
        None,
        Server(None, SecretStr("sk-2")),
    )
