"""`spark archive` before it starts a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import run_command


@pytest.mark.parametrize("kind", ["json", "avro"])
def test_a_schema_that_cannot_be_read_is_a_sentence_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    schema = tmp_path / "order.schema"

    def said() -> tuple[int, str]:
        result = run_command(
            *("spark", "archive", "orders", "--to", "lake/raw", "--checkpoint", str(tmp_path / "c")),
            *("--decode", f"value={kind}:{schema}"),
        )
        return result.status, result.err

    status, err = said()
    assert (status, err.startswith("Error: "), str(schema) in err, err.count("\n")) == (1, True, True, 1), err
    schema.write_text("{nope")
    status, err = said()
    assert status == 1
    assert err.startswith(f"Error: The value cannot be decoded: {schema} is no JSON: Expecting property name")
