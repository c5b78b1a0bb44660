"""What holds for every test: sessions are kept in memory, never in the user's own files."""

import os

os.environ["LOWWATER_STORE"] = "memory:"
