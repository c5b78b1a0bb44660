"""Policies: a decision context in, a decision with its reason out."""
