"""What an admin asks in the chat."""
