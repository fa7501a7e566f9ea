"""What an admin reads later: one trace per turn. `docs/admin.md` has the picture of one."""
