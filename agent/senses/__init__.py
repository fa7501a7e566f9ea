"""Pictures of labels and wine lists, and voice messages."""
