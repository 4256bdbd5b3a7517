"""Text mode: evaluates `text`, `encoding`, `errors` and `universal_newlines`, and converts in both directions."""

from __future__ import annotations

import io
from subprocess import SubprocessError


def is_text_mode(text: bool | None, encoding: str | None, errors: str | None, universal_newlines: bool | None) -> bool:
    """Return whether the streams are text. Raise if the arguments contradict each other."""
    if text is not None and universal_newlines is not None and bool(universal_newlines) != bool(text):
        raise SubprocessError(
            "Cannot disambiguate when both text and universal_newlines are supplied but different. "
            "Pass one or the other."
        )
    return bool(encoding or errors or text or universal_newlines)


def decode(data: bytes, encoding: str | None, errors: str | None) -> str:
    """Return the text that a text stream would return: `\\r\\n` and `\\r` become newlines."""
    return io.TextIOWrapper(io.BytesIO(data), encoding=encoding, errors=errors).read()


def encode(text: str, encoding: str | None, errors: str | None) -> bytes:
    """Encode a text. Newlines stay as they are, as in the `input` of `subprocess`."""
    if not isinstance(text, str):
        raise TypeError(f"input must be str in text mode, not {type(text).__name__}")
    if encoding is None:
        # The locale's encoding, as in open().
        encoding = io.TextIOWrapper(io.BytesIO()).encoding
    return text.encode(encoding, errors or "strict")
