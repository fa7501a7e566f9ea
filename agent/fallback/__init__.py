"""Rule-based answers, used if no language model is configured or available."""
