"""Lowwater in front of every model of a LiteLLM proxy: `litellm --config litellm_config.yaml` finds this file beside it."""

from lowwater.integrations.litellm import LowwaterHook

proxy_handler_instance = LowwaterHook()
