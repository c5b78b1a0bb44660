"""A turn of a session: what is decided and done before and after each call."""
