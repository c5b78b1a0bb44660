"""Sending: summaries written by a model, asked for over HTTP."""

from lowwater.send.summarizer import AsyncModelSummarizer, ModelSummarizer

__all__ = ["AsyncModelSummarizer", "ModelSummarizer"]
