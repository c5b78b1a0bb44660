"""Reading sessions that agents recorded: one module per agent."""
