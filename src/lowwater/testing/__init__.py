"""Public parts for testing what is built on Lowwater: fakes, strategies, a long session, a strict provider."""

from lowwater.logs.demo_session import DemoSession, demo_session

__all__ = ["DemoSession", "demo_session"]
