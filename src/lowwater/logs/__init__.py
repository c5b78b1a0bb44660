"""Reading what agents recorded, whatever they wrote it as: one module per agent."""
