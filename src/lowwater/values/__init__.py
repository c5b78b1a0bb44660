"""The nouns: immutable values that every other layer speaks of."""
