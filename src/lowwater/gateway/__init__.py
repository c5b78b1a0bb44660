"""The gateway: compaction for agents one did not write, in front of any OpenAI- or Anthropic-speaking client."""
