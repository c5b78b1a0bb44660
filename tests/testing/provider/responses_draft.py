"""A legal Responses request, with reasoning as the provider would have sealed it."""

from typing import Any

from lowwater.testing.provider.prompt import Sealing

HEADERS = {"authorization": "Bearer sk-secret"}


def sealed(text: str = "Hm.") -> str:
    """Reasoning that a provider with the usual key takes."""
    return Sealing(b"lowwater").sealed(text)


def draft() -> dict[str, Any]:
    """Two parallel calls behind reasoning, answered; then an answer behind reasoning, and thanks."""
    called = [
        {"type": "function_call", "id": "fc_1_by_rs_1", "call_id": "c1", "name": "bash", "arguments": "{}"},
        {"type": "function_call", "id": "fc_2_by_rs_1", "call_id": "c2", "name": "read", "arguments": "{}"},
    ]
    said = [{"type": "output_text", "text": "There are two.", "annotations": []}]
    return {
        "model": "gpt-5.5",
        "instructions": "Be brief.",
        "max_output_tokens": 1_000,
        "tools": [{"type": "function", "name": name} for name in ("bash", "read")],
        "input": [
            {"role": "user", "content": "List the files."},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed()},
            *called,
            {"type": "function_call_output", "call_id": "c1", "output": "a b"},
            {
                "type": "function_call_output",
                "call_id": "c2",
                "output": [{"type": "input_text", "text": "x"}],
            },
            {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": sealed("Ah.")},
            {"type": "message", "id": "msg_1_by_rs_2", "role": "assistant", "content": said},
            {"role": "user", "content": [{"type": "input_text", "text": "Thanks."}]},
        ],
    }
