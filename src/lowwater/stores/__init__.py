"""Where sessions are stored: in memory, in SQLite, in PostgreSQL, all behind the protocol `Store`."""
