"""Which tokenizer a model gets."""

import pytest

from lowwater.session.factories import calibration_for, counter_for, framing_for, vocabulary_for


@pytest.mark.parametrize(
    ("model", "vocabulary"),
    [
        ("gpt-6.1-sol", "o200k"),
        ("gpt-4o-mini", "o200k"),
        ("gpt-4.1", "o200k"),
        ("gpt-4-turbo", "cl100k"),
        ("gpt-4-1106-preview", "cl100k"),
        ("o4-mini", "o200k"),
        ("claude-opus-5-5", "o200k"),
        ("qwen/qwen3.8-max", "qwen3"),
        ("meta-llama/Llama-3.3-70B", "llama3"),
        ("deepseek-v4-pro", "deepseek"),
        ("zai/glm-5.3", "glm"),
        ("moonshotai/kimi-k3.1-pro", "kimi"),
        ("mistral-large-4", "mistral"),
        ("codestral-2508", "mistral"),
        ("something-nobody-knows", "o200k"),
    ],
)
def test_a_model_is_counted_in_its_own_vocabulary(model, vocabulary):
    assert vocabulary_for(model) == vocabulary
    assert counter_for(model).vocabulary == vocabulary


def test_a_session_starts_from_what_is_known_of_the_family():
    assert calibration_for("claude-opus-4-6").scale == 1.18
    assert framing_for("claude-opus-4-6").arguments == "values"
    assert framing_for("gpt-6-sol").arguments == "text"
