"""Lines of Codex rollouts, as its client writes them."""

START = "2026-07-06T11:00:00Z"


def line(type, payload):
    return {"timestamp": START, "type": type, "payload": payload}


def meta(id="s1", **fields):
    return line("session_meta", {"id": id, "base_instructions": {"text": "Be brief."}, **fields})


def item(type, **fields):
    return line("response_item", {"type": type, **fields})


def said(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def call(id):
    return item("function_call", name="exec", arguments='{"cmd":"ls"}', call_id=id)


def output(id, text="files"):
    return item("function_call_output", call_id=id, output=text)


def figures(input, cached, output):
    return {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output}


def count(last, total):
    info = {"last_token_usage": figures(*last), "total_token_usage": figures(*total)}
    return line("event_msg", {"type": "token_count", "info": info})


MODEL = line("turn_context", {"model": "gpt-5.5"})


def calls(recording):
    return [message.call for message in recording.messages if message.call]
