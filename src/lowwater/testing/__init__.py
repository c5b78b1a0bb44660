"""Tools for testing what you build on Lowwater: fakes, Hypothesis strategies, a long session, a strict provider."""

from lowwater.logs.demo_session import DemoSession, demo_session

__all__ = ["DemoSession", "demo_session"]
