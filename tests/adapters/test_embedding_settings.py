"""Settings of embeddings: what is missing or wrong is named before anything is asked, and a key is never shown."""

import subprocess
import sys
from pathlib import Path

import pytest

from citewell import wiring
from citewell.errors import SettingsError
from tests.conftest import Citewell, settings_for

MINE = {"embedder": "custom", "embedding_model": "ours", "embedding_dimensions": 64}


@pytest.mark.parametrize(("embedder", "name"), [
    ("openai", "OPENAI_API_KEY"), ("gemini", "GEMINI_API_KEY"), ("cohere", "COHERE_API_KEY"),
    ("custom", "CITEWELL_EMBEDDING_BASE_URL"),
])  # fmt: skip
def test_what_is_missing_is_named(tmp_path: Path, embedder: str, name: str) -> None:
    keys = {"openai_api_key": None, "gemini_api_key": None, "cohere_api_key": None}
    with pytest.raises(SettingsError, match=rf"^Required environment variable {name} not set\.$"):
        wiring.check_settings(settings_for(tmp_path, embedder=embedder, **keys))


def test_a_missing_key_is_named_before_anything_is_made(citewell: Citewell, docs: Path, home: Path) -> None:
    done = citewell("ingest", str(docs), CITEWELL_EMBEDDER="gemini", GEMINI_API_KEY="")
    assert done.returncode == 1
    assert done.stderr.strip() == "Error: Required environment variable GEMINI_API_KEY not set."
    assert not home.exists()


def test_a_server_of_one_s_own_needs_a_model_and_its_dimensions(tmp_path: Path) -> None:
    url = "http://127.0.0.1:1/v1"
    with pytest.raises(SettingsError, match="Required environment variable CITEWELL_EMBEDDING_MODEL not set"):
        wiring.check_settings(settings_for(tmp_path, embedder="custom", embedding_base_url=url))
    with pytest.raises(SettingsError, match="set CITEWELL_EMBEDDING_DIMENSIONS"):
        wiring.check_settings(settings_for(tmp_path, embedder="custom", embedding_base_url=url, embedding_model="ours"))
    wiring.check_settings(settings_for(tmp_path, **MINE, embedding_base_url=url))


@pytest.mark.parametrize("key", [" ", "two words", "línea", "line\nbreak"])
@pytest.mark.parametrize("embedder", ["openai", "cohere"])
def test_a_key_that_cannot_be_one_is_refused_without_showing_it(tmp_path: Path, embedder: str, key: str) -> None:
    with pytest.raises(SettingsError, match=f"{embedder.upper()}_API_KEY") as refused:
        wiring.check_settings(settings_for(tmp_path, embedder=embedder, **{f"{embedder}_api_key": key}))
    assert not key.strip() or key not in str(refused.value)


def test_a_key_of_its_own_for_embeddings_comes_first(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="CITEWELL_EMBEDDING_API_KEY is no key"):
        wiring.check_settings(
            settings_for(tmp_path, embedder="openai", openai_api_key="fine", embedding_api_key="two words")
        )


@pytest.mark.parametrize(("embedder", "package", "extra"), [
    ("openai", "openai", "llm"), ("gemini", "openai", "llm"), ("cohere", "cohere", "cohere"),
])  # fmt: skip
def test_without_the_sdk_the_error_says_how_to_get_it(tmp_path: Path, embedder: str, package: str, extra: str) -> None:
    """In a process of its own, in which there is no such package."""
    program = f"""
import sys
sys.modules["{package}"] = None
from citewell import wiring
from citewell.errors import SettingsError
from citewell.settings import Settings
wiring.check_settings(Settings(home="{tmp_path}", embedder="minilm"))
try:
    wiring.check_settings(Settings(home="{tmp_path}", embedder="{embedder}", embedding_api_key="k"))
except SettingsError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip().endswith(f"run `pip install 'citewell[{extra}]'`")


def test_no_vendor_s_sdk_is_loaded_unless_it_is_configured(tmp_path: Path) -> None:
    program = f"""
import sys
from citewell import wiring
from citewell.settings import Settings
wiring.check_settings(Settings(home="{tmp_path}"))
print([name for name in ("openai", "cohere", "agents") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "[]"


def test_what_is_set_and_not_used_is_named(tmp_path: Path) -> None:
    keys = {"openai_api_key": "a", "gemini_api_key": "b", "cohere_api_key": "c"}
    quoting = {**keys, "llm": "none"}
    assert settings_for(tmp_path, **quoting).unused() == ["GEMINI_API_KEY", "OPENAI_API_KEY", "COHERE_API_KEY"]
    assert settings_for(tmp_path, **quoting, embedder="gemini").unused() == ["OPENAI_API_KEY", "COHERE_API_KEY"]
    own = {"embedding_api_key": "d", "embedding_model": "text-embedding-3-large", "openai_api_key": "a", "llm": "none"}
    assert settings_for(tmp_path, **own, embedder="openai").unused() == ["OPENAI_API_KEY"]
    assert settings_for(tmp_path, **MINE | {"embedder": "minilm"}).unused() == [
        "CITEWELL_EMBEDDING_MODEL",
        "CITEWELL_EMBEDDING_DIMENSIONS",
    ]
