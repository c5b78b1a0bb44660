"""A replay over many recorded sessions: each played under every policy, on all cores, resumable."""
