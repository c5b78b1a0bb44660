"""A conversation in the hands of a caller: its turns, what is stored when, and how it is looked back on."""
