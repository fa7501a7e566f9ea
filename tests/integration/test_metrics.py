"""What Prometheus reads: the metrics as text, parsed back by Prometheus' own parser."""

from prometheus_client.parser import text_string_to_metric_families

from bot.metrics import Metrics


def samples(metrics: Metrics) -> dict[str, float]:
    """Return every sample by its name and the values of its labels."""
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        " ".join([sample.name.removeprefix("sommelier_"), *sample.labels.values()]): sample.value
        for family in families
        for sample in family.samples
    }


def test_turns_updates_and_sends_are_counted_by_what_became_of_them() -> None:
    metrics = Metrics(lambda: 2)
    Metrics().update("accepted")
    metrics.turn_ended("answered", 1.5)
    metrics.turn_ended("answered", 4)
    metrics.telegram_send("ambiguous")
    metrics.update("accepted")
    expected = {
        "turns_total answered": 2,
        "turns_total failed": 0,  # a series is there from the start
        "turn_seconds_sum": 5.5,
        "turn_seconds_bucket 2.0": 1,
        "telegram_sends_total ambiguous": 1,
        "updates_total accepted": 1,
        "traces_dropped": 2,
    }
    assert samples(metrics).items() >= expected.items()
