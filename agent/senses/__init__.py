"""What the bot sees and hears: pictures of labels and wine lists, voices."""
