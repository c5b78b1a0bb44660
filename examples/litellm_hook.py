"""Lowwater for every model of a LiteLLM proxy: `litellm --config litellm_config.yaml` finds this file next to its configuration."""

from lowwater.integrations.litellm import LowwaterHook

proxy_handler_instance = LowwaterHook()
