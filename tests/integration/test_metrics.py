"""What Prometheus reads: the metrics as text, parsed back by Prometheus' own parser."""

import math

from prometheus_client.parser import text_string_to_metric_families

from bot.metrics import Metrics


def samples(metrics: Metrics) -> dict[str, float]:
    """Every sample by its name and the values of its labels, the times of creation left out."""
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        " ".join([sample.name.removeprefix("sommelier_"), *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def counts(metrics: Metrics) -> dict[str, float]:
    """The samples that are not zero, without the buckets of histograms."""
    return {
        name: value
        for name, value in samples(metrics).items()
        if value and "_bucket" not in name and not math.isnan(value)
    }


def test_turns_updates_and_sends_are_counted_by_what_became_of_them() -> None:
    given_up = 2
    metrics = Metrics(lambda: given_up)
    metrics.turn_ended("answered", seconds=1.5, requests=3, retries=1)
    metrics.turn_ended("answered", seconds=0.5, requests=2)
    metrics.turn_ended("fallback", seconds=4)
    metrics.turn_started(0.02)
    metrics.telegram_send()
    metrics.telegram_send("ambiguous")
    for result in ("coalesced", "accepted", "accepted"):
        metrics.update(result)
    assert counts(metrics) == {
        "turns_total answered": 2,
        "turns_total fallback": 1,
        "model_requests_total": 5,
        "retries_total": 1,
        "turn_seconds_count": 3,
        "turn_seconds_sum": 6,
        "start_seconds_count": 1,
        "start_seconds_sum": 0.02,
        "telegram_sends_total sent": 1,
        "telegram_sends_total ambiguous": 1,
        "updates_total coalesced": 1,
        "updates_total accepted": 2,
        "traces_dropped": 2,
    }
    assert samples(metrics)["turn_seconds_bucket 1.0"] == 1
    assert samples(metrics)["turn_seconds_bucket +Inf"] == 3
    given_up = 7
    assert counts(metrics)["traces_dropped"] == 7


def test_every_series_is_there_from_the_start_and_of_one_process_alone() -> None:
    Metrics().update("accepted")
    started = samples(Metrics())
    for series in (
        *("updates_total accepted", "updates_total set_aside", "webhook_refusals_total secret"),
        *("turns_total failed", "telegram_sends_total rate_limited", "model_requests_total"),
    ):
        assert started[series] == 0
