"""How well a variant (a model, a prompt) serves guests: conversations, evaluators, reports."""
