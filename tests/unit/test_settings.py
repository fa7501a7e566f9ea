"""Settings: read once, in groups, each named by its variable."""

from pathlib import Path

import pytest

from agent.engine.limits import Limits
from config import Settings, SettingsError, load_settings

SECRET = "a-secret_of-16-or-more"
HOOK = {"WEBHOOK_URL": "https://bot.example.com", "WEBHOOK_SECRET": SECRET, "HTTP_PORT": "8080"}


def test_the_limits_of_a_turn_are_the_engines_own_unless_set() -> None:
    assert Settings().limits == Limits()
    assert Limits().structured_output_max_retries == 2
    assert load_settings(None, {"TURN_MAX_COST_USD": "3"}).limits.cost_usd == 3


def test_every_variable_has_a_name_of_its_own_and_a_description() -> None:
    variables = list(Settings().variables())
    assert len({variable.name for variable in variables}) == len(variables)
    assert all(variable.description for variable in variables)


def test_the_environment_wins_over_the_file_and_an_empty_value_counts_as_not_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "some.env"
    file.write_text("LLM_MODEL=from-file\nllm_timeout_seconds=7\nHTTP_HOST=0.0.0.0\nHTTP_PORT=\n")
    monkeypatch.setenv("LLM_MODEL", "from-environment")
    monkeypatch.setenv("HTTP_HOST", "")
    settings = load_settings(file)
    assert (settings.llm_model, settings.llm_timeout_seconds) == ("from-environment", 7)
    assert (settings.http_host, settings.http_port) == ("0.0.0.0", None)


def test_an_error_names_every_wrong_variable_in_one_line_and_shows_no_value() -> None:
    wrong = {
        "LLM_TIMEOUT_SECONDS": "must be a valid number",
        "ACCESS": "must be 'open' or 'allow_list'",
        "ADMIN_IDS": "must be ids of users",
        "API_TOKEN": "must be 16 or more",
        "CARE_REGION": "must be a country's two letters",
        "DATABASE_URL": "must be an address that begins with sqlite",
        "LANGFUSE_TRACING_ENVIRONMENT": "must be 1 to 40 of",
        "TELEGRAM_BOT_TOKEN": "must be a token of @BotFather",
        "TIME_ZONE": "must be a time zone like Europe/Vienna",
        "WEBHOOK_SECRET": "must be 16 to 256 of",
        "WEBHOOK_URL": "must be an address that begins with http",
    }
    with pytest.raises(SettingsError) as raised:
        load_settings(None, dict.fromkeys(wrong, "s3cret s3cret"))
    message = str(raised.value)
    assert [name for name, problem in wrong.items() if f"{name}: {problem}" not in message] == []
    assert "\n" not in message
    assert "s3cret" not in message


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"WEBHOOK_SECRET": ""}, "WEBHOOK_SECRET: must be set with WEBHOOK_URL"),
        ({"HTTP_PORT": ""}, "HTTP_PORT: must be set with WEBHOOK_URL"),
        ({"WEBHOOK_URL": "http://bot.example.com"}, "WEBHOOK_URL: must begin with https://"),
    ],
)
def test_a_webhook_needs_https_a_secret_and_a_port(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], problem: str
) -> None:
    for name, value in (HOOK | changed).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=problem):
        load_settings(None)


def test_what_logs_must_not_hold_are_all_secrets_that_are_set() -> None:
    settings = load_settings(
        None,
        HOOK
        | {
            "VISION_API_KEY": "key-1",
            "DATABASE_URL": "postgresql+psycopg://me:pass%20word@localhost/x",
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b",
        },
    )
    assert set(settings.secrets) == {SECRET, "key-1", "pass word", "a b"}
