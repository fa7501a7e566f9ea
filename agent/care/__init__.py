"""Who is offered no alcohol, and where help is to be had."""
