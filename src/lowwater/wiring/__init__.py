"""Picks the implementations that fit a model and a setting."""
