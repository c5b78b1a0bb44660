"""The Claude Agent SDK through Lowwater's gateway: run `lowwater serve`, and pip install claude-agent-sdk."""

import asyncio
import os

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

gateway = os.environ.get("LOWWATER_URL", "http://127.0.0.1:4141")
options = ClaudeAgentOptions(allowed_tools=["Read", "Grep"], env={"ANTHROPIC_BASE_URL": gateway})


async def main() -> None:
    """Ask once; every call that the agent makes goes through the gateway."""
    async for message in query(prompt="What does this project do?", options=options):
        if isinstance(message, ResultMessage):
            print(message.result)


asyncio.run(main())
