"""Reading what a message wishes, by tables: its language, colour, dish, price, origin, grape."""
