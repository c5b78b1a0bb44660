"""Where events go: callbacks, the log, memory."""
