"""What Prometheus reads: the metrics as text, parsed back by Prometheus' own parser."""

import math

from prometheus_client.parser import text_string_to_metric_families

from bot.metrics import Metrics
from db.repositories.inbox import Backlog


def samples(metrics: Metrics) -> dict[str, float]:
    """Every sample by its name and the values of its labels, the times of creation left out."""
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        " ".join([sample.name.removeprefix("sommelier_"), *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_turns_updates_and_sends_are_counted_by_what_became_of_them() -> None:
    given_up = 2
    metrics = Metrics(lambda: given_up)
    Metrics().update("accepted")
    metrics.turn_ended("answered", 1.5)
    metrics.turn_ended("fallback", 4)
    metrics.telegram_send()
    metrics.telegram_send("ambiguous")
    metrics.update("coalesced")
    metrics.update("accepted")
    counts = {
        name: value
        for name, value in samples(metrics).items()
        if value and "_bucket" not in name and not math.isnan(value)
    }
    assert counts == {
        "turns_total answered": 1,
        "turns_total fallback": 1,
        "turn_seconds_count": 2,
        "turn_seconds_sum": 5.5,
        "telegram_sends_total sent": 1,
        "telegram_sends_total ambiguous": 1,
        "updates_total coalesced": 1,
        "updates_total accepted": 1,
        "traces_dropped": 2,
    }
    assert samples(metrics)["turn_seconds_bucket 2.0"] == 1
    given_up = 7
    assert samples(metrics)["traces_dropped"] == 7
    for series in (
        "updates_total set_aside",
        "webhook_refusals_total secret",
        "turns_total failed",
    ):
        assert samples(metrics)[series] == 0, "a series is there from the start"


def test_the_backlog_is_shown_as_last_told_and_as_no_number_when_unknown() -> None:
    metrics = Metrics()
    assert math.isnan(samples(metrics)["queue_depth"])
    metrics.backlog(Backlog(waiting=4, oldest_seconds=1.5))
    shown = samples(metrics)
    assert (shown["queue_depth"], shown["queue_oldest_seconds"]) == (4, 1.5)
