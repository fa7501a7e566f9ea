"""Safety: which concerns are noticed, what follows from them, what is shown, what is left out."""
