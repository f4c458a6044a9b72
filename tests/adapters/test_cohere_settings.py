"""Cohere's settings: what is missing or wrong is named before anything is asked, and a key is never shown."""

import subprocess
import sys
from pathlib import Path

import pytest

from citewell import wiring
from citewell.errors import SettingsError
from citewell.settings import Settings
from tests.conftest import Citewell, settings_for
from tests.fakes.cohere import KEY


def test_a_missing_key_is_named_at_the_start(citewell: Citewell) -> None:
    for command in (["ask", "What?"], ["serve", "--port", "0"]):
        done = citewell(*command, CITEWELL_RERANKER="cohere", COHERE_API_KEY="")
        assert done.returncode == 1
        assert done.stderr.strip() == "Error: Required environment variable COHERE_API_KEY not set."


@pytest.mark.parametrize("key", [" ", "two words", "línea", "line\nbreak"])
def test_a_key_that_cannot_be_one_is_refused_without_showing_it(tmp_path: Path, key: str) -> None:
    with pytest.raises(SettingsError, match="COHERE_API_KEY") as refused:
        wiring.check_settings(settings_for(tmp_path, reranker="cohere", cohere_api_key=key))
    assert not key.strip() or key not in str(refused.value)


def test_a_key_may_end_with_the_line_it_was_read_from(tmp_path: Path) -> None:
    wiring.check_settings(settings_for(tmp_path, reranker="cohere", cohere_api_key=f"{KEY}\n"))


def test_without_the_sdk_the_error_says_how_to_get_it(tmp_path: Path) -> None:
    """In a process of its own, in which there is no such package."""
    program = """
import sys
sys.modules["cohere"] = None
from citewell import wiring
from citewell.errors import SettingsError
from citewell.settings import Settings
wiring.check_settings(Settings())
try:
    wiring.check_settings(Settings(reranker="cohere", cohere_api_key="key"))
except SettingsError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "pip install 'citewell[cohere]'" in done.stdout


def test_the_key_is_used_only_where_cohere_is_configured(tmp_path: Path) -> None:
    assert settings_for(tmp_path, cohere_api_key=KEY).unused() == ["COHERE_API_KEY"]
    assert settings_for(tmp_path, cohere_api_key=KEY, reranker="cohere").unused() == []


def test_an_address_that_is_none_is_refused(citewell: Citewell) -> None:
    done = citewell("ask", "What?", CITEWELL_COHERE_BASE_URL="cohere")
    assert done.returncode == 1
    assert "CITEWELL_COHERE_BASE_URL='cohere'" in done.stderr


def test_nothing_of_cohere_is_loaded_where_it_is_not_configured(tmp_path: Path) -> None:
    program = "import sys; from citewell import wiring; from citewell.settings import Settings\n"
    program += "wiring.check_settings(Settings()); print({'cohere', 'httpx'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "set()"
    assert Settings(home=tmp_path).reranker == "local"
