"""The store in a PostgreSQL database: several processes and machines at once."""
