"""One turn, from what the client sends to what the model is sent and what it answered."""
