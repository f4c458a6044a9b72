"""Who writes the answers: chosen by what is set, named when it is missing, and not even loaded when nobody does."""

import subprocess
import sys
from pathlib import Path

import pytest

from citewell import wiring
from citewell.adapters.vendors import VENDORS, VendorId
from citewell.errors import SettingsError
from tests.conftest import Citewell, settings_for
from tests.fakes.llm import KEY, LLM, MODEL, Fails, Says

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("values", "writes"),
    [
        ({}, "none"),
        ({"gemini_api_key": KEY}, "gemini"),
        ({"openai_api_key": KEY}, "openai"),
        ({"gemini_api_key": KEY, "openai_api_key": KEY}, "gemini"),
        ({"gemini_api_key": KEY, "llm": "openai", "openai_api_key": KEY}, "openai"),
        ({"gemini_api_key": KEY, "llm_base_url": "http://127.0.0.1:1/v1"}, "custom"),
        ({"gemini_api_key": KEY, "llm": "none"}, "none"),
        ({"llm": "ollama"}, "ollama"),
    ],
)
def test_who_writes_follows_from_what_is_set(tmp_path: Path, values: dict[str, object], writes: str) -> None:
    assert settings_for(tmp_path, **values).writes == writes


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"llm": "openai"}, "OPENAI_API_KEY"),
        ({"llm": "gemini"}, "GEMINI_API_KEY"),
        ({"llm": "custom", "llm_model": MODEL}, "CITEWELL_LLM_BASE_URL"),
        ({"llm_base_url": "http://127.0.0.1:1/v1"}, "CITEWELL_LLM_MODEL"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, values: dict[str, object], missing: str) -> None:
    with pytest.raises(SettingsError, match=f"^Required environment variable {missing} not set.$"):
        wiring.check_settings(settings_for(tmp_path, **values))


@pytest.mark.parametrize("vendor", ["openai", "gemini", "ollama"])
async def test_each_vendor_has_a_model_that_a_setting_replaces(tmp_path: Path, vendor: VendorId) -> None:
    for model in (None, "newer-model"):
        settings = settings_for(tmp_path, llm=vendor, llm_api_key=KEY, llm_model=model, embedder="hashing")
        async with wiring.open_for_answers(settings) as reading:
            assert reading.engines.writer
            assert reading.engines.writer.model == (model or VENDORS[vendor].llm_model)


def test_a_key_that_writes_is_used_and_one_that_does_not_is_named(tmp_path: Path) -> None:
    assert settings_for(tmp_path, gemini_api_key=KEY).unused() == []
    assert settings_for(tmp_path, gemini_api_key=KEY, llm="none").unused() == ["GEMINI_API_KEY"]


_WITHOUT = """
import sys
sys.modules["agents"] = None
from citewell import wiring
from citewell.errors import SettingsError
from citewell.settings import Settings
wiring.check_settings(Settings(gemini_api_key="key"))
try:
    wiring.check_settings(Settings(llm="gemini", gemini_api_key="key"))
except SettingsError as error:
    print(error)
"""


def test_without_the_sdk_a_key_is_passed_over_and_a_wish_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "pip install 'citewell[llm]'" in done.stdout
    assert "GEMINI_API_KEY is set, but" in done.stderr
    assert "answers are quotations" in done.stderr


def test_nothing_of_an_llm_is_loaded_where_none_writes(tmp_path: Path) -> None:
    program = "import sys; from citewell import wiring; from citewell.settings import Settings\n"
    program += "wiring.check_settings(Settings()); print({'agents', 'openai'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "set()"


def test_the_terminal_shows_what_the_model_wrote_and_what_nothing_supports(citewell: Citewell, book_home: Path) -> None:
    said = "Integrating a bias makes the result drift [1]. Napoleon built 47 lighthouses on Mars in 1811"
    said = f"{said} [1]. He liked cheese."
    with LLM(Says(said), Says(said), Fails(500)) as llm:
        model = {"CITEWELL_LLM_BASE_URL": llm.url, "CITEWELL_LLM_MODEL": MODEL, "CITEWELL_LLM_API_KEY": KEY}
        model |= {"CITEWELL_UNSUPPORTED": "show"}
        asked = ("ask", "Why do gyroscopes drift?")
        shown = citewell(*asked, CITEWELL_HOME=str(book_home), **model)
        as_json = citewell(*asked, "--json", CITEWELL_HOME=str(book_home), **model)
        quoted = citewell(*asked, CITEWELL_HOME=str(book_home), **model)
    assert shown.stdout.startswith("Integrating a bias makes the result drift [1]. Napoleon")
    assert "Not supported by the sources:\n  Napoleon built 47 lighthouses" in shown.stdout
    assert "also wrote a sentence that the sources do not clearly support; not shown here." in shown.stdout
    assert "cheese" not in shown.stdout, "a terminal cannot fold"
    assert '"unsupported": ["He liked cheese."]' in as_json.stdout
    assert '"verdict": "unsupported"' in as_json.stdout
    assert "The language model is unavailable" in quoted.stdout
    assert "[1]" in quoted.stdout
    assert KEY not in quoted.stdout + quoted.stderr
