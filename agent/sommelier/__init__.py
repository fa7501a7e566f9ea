"""The sommelier: answers to guests, based only on the catalogue and other sources."""
