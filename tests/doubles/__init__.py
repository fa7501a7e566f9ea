"""Stand-ins for the services we talk to: real servers on loopback, never patched clients."""
