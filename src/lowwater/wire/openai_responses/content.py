"""The parts of a message's or an output's content, both ways."""

from collections.abc import Sequence

from msgspec import Struct

from lowwater.errors import BadInput
from lowwater.values.parts import AnyPart, Document, Image, Opaque, ResultPart, Source, Text
from lowwater.wire.reading import extra_of, fields_of, read_json, write_array, write_json, write_object

_TEXTS = frozenset({"input_text", "output_text", "text"})


class _Typed(Struct):
    type: str = ""


class _Text(Struct):
    text: str


class _Image(Struct):
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


class _File(Struct):
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None


def decode_content(raw: bytes, own: str) -> ResultPart:
    """Return one content part; `own` is the type that text has where it stands."""
    match read_json(raw, _Typed).type:
        case kind if kind in _TEXTS:
            known = {"text"} | ({"type"} if kind == own else set())
            return Text(text=read_json(raw, _Text).text, extra=extra_of(raw, known))
        case "input_image":
            return _image(raw)
        case "input_file":
            return _file(raw)
        case "":
            raise BadInput("a content part has no type")
        case kind:
            return Opaque(block=kind, body=raw.decode())


def encode_content(parts: Sequence[AnyPart], own: str) -> bytes:
    """Return parts as a list of content."""
    return write_array([_encoded(part, own) for part in parts])


def _image(raw: bytes) -> Image:
    image = read_json(raw, _Image)
    media_type, data = _data_url(image.image_url or "")
    source: Source = "file" if image.file_id else "base64" if data else "url"
    return Image(
        source=source,
        data=image.file_id or data or image.image_url or "",
        media_type=media_type,
        detail=image.detail or "",
        extra=_extra(raw, _Image),
    )


def _file(raw: bytes) -> Document:
    file = read_json(raw, _File)
    media_type, data = _data_url(file.file_data or "")
    source: Source = "file" if file.file_id else "url" if file.file_url else "base64"
    return Document(
        source=source,
        data=file.file_id or file.file_url or data or file.file_data or "",
        media_type=media_type,
        title=file.filename or "",
        extra=_extra(raw, _File),
    )


def _encoded(part: AnyPart, own: str) -> bytes:
    fields: dict[str, bytes]
    match part:
        case Text():
            fields = {"type": write_json(own), "text": write_json(part.text)}
        case Image():
            fields = {"type": b'"input_image"'} | _image_source(part)
            if part.detail:
                fields["detail"] = write_json(part.detail)
        case Document(source="text"):
            fields = {"type": write_json(own), "text": write_json(part.data)}
        case Document():
            fields = {"type": b'"input_file"'} | _file_source(part)
        case Opaque():
            return part.body.encode()
        case _:
            raise AssertionError(f"a {part.kind} is not a content part")
    return write_object(fields | fields_of(part.extra))


def _image_source(image: Image) -> dict[str, bytes]:
    if image.source == "file":
        return {"file_id": write_json(image.data)}
    is_data = image.source == "base64"
    url = f"data:{image.media_type};base64,{image.data}" if is_data else image.data
    return {"image_url": write_json(url)}


def _file_source(document: Document) -> dict[str, bytes]:
    match document.source:
        case "file":
            said = {"file_id": document.data}
        case "url":
            said = {"file_url": document.data}
        case _:
            head = f"data:{document.media_type};base64," if document.media_type else ""
            said = {"file_data": head + document.data}
    if document.title:
        said["filename"] = document.title
    return {name: write_json(value) for name, value in said.items()}


def _data_url(url: str) -> tuple[str, str]:
    """Return media type and data of a base64 data URL, or two empty strings for any other."""
    head, comma, data = url.partition(";base64,")
    return (head.removeprefix("data:"), data) if comma and head.startswith("data:") else ("", "")


def _extra(raw: bytes, known: type[Struct]) -> bytes:
    return extra_of(raw, {"type", *known.__struct_fields__})
