"""Lines with columns, as Apache Kafka's tools pad them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def padded(titles: Sequence[str], widths: Sequence[int], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns of at least these widths, after an empty line; the last one is not padded if its width is 0."""
    lines = [titles, *rows]
    wide = [max(width, *(len(line[i]) for line in lines)) if width else 0 for i, width in enumerate(widths)]
    yield ""
    for line in lines:
        yield " ".join(f"{text:<{width}}" for text, width in zip(line, wide, strict=True))
