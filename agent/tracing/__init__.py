"""Record, mask and send traces, and read the prompts of Langfuse."""
