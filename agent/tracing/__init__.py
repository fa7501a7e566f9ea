"""What an admin reads later: one trace per turn. `docs/tracing.md` has the picture of one."""
