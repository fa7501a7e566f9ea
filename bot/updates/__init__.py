"""Store updates, group them into turns, and run the turns in order.

A turn that a crash interrupts is run again.
"""
