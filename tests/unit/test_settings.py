"""Settings: read once, in groups, each named by its variable."""

from pathlib import Path

import pytest

from agent.engine.limits import Limits
from config import Settings, SettingsError, load_settings, settings_of, variables

SECRET = "a-secret_of-16-or-more"


def test_an_invalid_answer_is_asked_for_again_twice() -> None:
    assert Settings().turn.structured_output_max_retries == 2


def test_the_limits_of_a_turn_are_the_engines_own_unless_set() -> None:
    assert Settings().turn.limits == Limits()
    assert settings_of({"TURN_MAX_REQUESTS": "3"}).turn.limits.requests == 3


def test_no_variable_is_named_twice() -> None:
    fields = sum(
        len(type(getattr(Settings(), group)).model_fields) for group in Settings.model_fields
    )
    assert len(variables()) == fields


def test_the_environment_wins_over_the_file_and_an_empty_value_counts_as_not_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "some.env"
    file.write_text("LLM_MODEL=from-file\nllm_timeout_seconds=7\nHTTP_HOST=0.0.0.0\n")
    monkeypatch.setenv("LLM_MODEL", "from-environment")
    monkeypatch.setenv("HTTP_HOST", "")
    settings = load_settings(file)
    assert (settings.model.name, settings.model.timeout_seconds) == ("from-environment", 7)
    assert settings.http.host == "0.0.0.0"


def test_every_wrong_variable_is_named_in_one_line_and_no_value_is_shown() -> None:
    wrong = {"LLM_TIMEOUT_SECONDS": "soon", "HTTP_PORT": "x-secret", "WEBHOOK_URL": "s3cret"}
    with pytest.raises(SettingsError) as raised:
        settings_of(wrong)
    told = str(raised.value)
    assert all(f"{name}: " in told for name in wrong)
    assert "\n" not in told
    assert "secret" not in told
    assert "s3cret" not in told


def test_a_webhook_needs_its_secret_and_a_port() -> None:
    url = {"WEBHOOK_URL": "https://bot.example.com"}
    with pytest.raises(SettingsError, match="WEBHOOK_SECRET must be set with WEBHOOK_URL"):
        settings_of(url)
    with pytest.raises(SettingsError, match="HTTP_PORT must be set with WEBHOOK_URL"):
        settings_of(url | {"WEBHOOK_SECRET": SECRET})


@pytest.mark.parametrize("secret", ["abc", "x" * 15, "x" * 257, "with spaces in between", "é" * 16])
def test_a_webhooks_secret_is_one_that_nobody_guesses(secret: str) -> None:
    whole = {"WEBHOOK_URL": "https://bot.example.com", "HTTP_PORT": "8080"}
    with pytest.raises(SettingsError, match=r"WEBHOOK_SECRET must be set .* 16 to 256"):
        settings_of(whole | {"WEBHOOK_SECRET": secret})
    assert settings_of(whole | {"WEBHOOK_SECRET": SECRET}).http.port == 8080


def test_telegram_delivers_to_https_alone() -> None:
    with pytest.raises(SettingsError, match="WEBHOOK_URL must begin with https"):
        settings_of({"WEBHOOK_URL": "http://bot.example.com", "WEBHOOK_SECRET": SECRET})
