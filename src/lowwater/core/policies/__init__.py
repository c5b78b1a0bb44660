"""Policies: a situation in, a decision with its reason out."""
