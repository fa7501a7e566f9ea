"""Record, mask and send traces; read prompts, datasets and experiments of Langfuse."""
