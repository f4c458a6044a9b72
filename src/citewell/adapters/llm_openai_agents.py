"""An LLM through the OpenAI Agents SDK: any server that speaks OpenAI's chat completions.

Knows how to ask, to wait and to give up; nothing of what is asked, or of what an answer does when nobody writes it.
What leaves this machine is the assignment, and what the searches it allows find.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias

import httpx2
from agents import Agent, FunctionTool, ModelSettings, RunConfig, Runner, set_tracing_disabled
from agents import OpenAIChatCompletionsModel as ChatModel
from agents.exceptions import AgentsException, MaxTurnsExceeded, ModelRefusalError
from agents.items import TResponseInputItem, TResponseStreamEvent
from agents.result import RunResultStreaming
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI, OpenAIError
from pydantic import BaseModel, Field, ValidationError

from citewell.errors import WriterUnavailable
from citewell.models import TokenUsage
from citewell.ports import Search, WritingTask
from citewell.retry import CircuitBreaker, RetryPolicy, checked_key, sendable

set_tracing_disabled(True)  # or the SDK would send every question to its vendor, whoever the LLM is

_CONNECT_SECONDS = 5.0
_CHECK_SECONDS = 5.0  # for the one try that finds out whether a failure is over
_PROBE_SECONDS = 10.0
_TURNS = 5
_SEARCHES = 3
# What comes of a stream that is not as documented: the SDK takes it apart without looking first.
_SENSELESS = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
_NO_TOOLS = re.compile(r"support\w*\b.*\b(?:tool|function)|\b(?:tool|function)\w*\b.*\bsupport", re.IGNORECASE)
_FAULTS = (OpenAIError, httpx2.HTTPError, AgentsException, TimeoutError, *_SENSELESS)

_Words: TypeAlias = "asyncio.Queue[str | Exception | None]"
"""What is heard of a run: words, "" for any other sign of life, and at the end None or a fault."""


class _Silent(ValueError):
    """A run that ended well, without a word."""


@dataclass(frozen=True, slots=True)
class Provider:
    """Where an LLM is, what its model is called there, and what it can take."""

    name: str
    base_url: str
    model: str
    key: str = ""
    key_name: str = "CITEWELL_LLM_API_KEY"
    context_tokens: int = 8192
    temperature: float | None = None
    thinks: bool = False
    """Whether what it thinks counts as written, so that a limit on the answer would silence it."""
    silent_seconds: float = 30.0
    """How long it may be silent."""


PROVIDERS = {
    "openai": Provider("OpenAI", "https://api.openai.com/v1", "gpt-5-mini", thinks=True),
    "gemini": Provider(
        "Gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-flash-latest", thinks=True
    ),
    "ollama": Provider("Ollama", "http://127.0.0.1:11434/v1", "llama3.2", context_tokens=4096),
    "custom": Provider("the LLM server", "", ""),
}


class AgentsWriter:
    """Writes with one model. The first try that finds the server dead is the last for a while."""

    def __init__(
        self, provider: Provider, *, patience: RetryPolicy | None = None, now: Callable[[], float] = monotonic
    ) -> None:
        key = checked_key(provider.key, provider.key_name) if provider.key.strip() else ""
        self.model = provider.model
        self.context_tokens = provider.context_tokens
        self._provider = provider
        self._key = key
        silent = provider.silent_seconds
        patience = patience or RetryPolicy(try_seconds=silent, whole_seconds=3.5 * silent, backoff_seconds=0.5)
        self._patience = patience
        self._pause = CircuitBreaker(patience, now)
        self._takes_tools = True
        self._now = now
        self._ask_again = now()
        self._unreached = ""
        self._client = AsyncOpenAI(
            api_key=key or "none",  # a local server asks for no key, the SDK does
            base_url=provider.base_url,
            max_retries=0,  # the repeating is done here: the SDK would repeat neither after a cut nor by our clock
            timeout=httpx2.Timeout(patience.try_seconds, connect=min(_CONNECT_SECONDS, patience.try_seconds)),
        )

    async def write(self, work: WritingTask) -> AsyncGenerator[str | TokenUsage, None]:
        tries = self._pause.tries()
        if not tries:
            raise self._left_alone()
        checking = tries < self._patience.tries
        give_up = asyncio.get_running_loop().time() + self._patience.whole_seconds
        attempt, said, tools = 0, False, self._takes_tools
        while True:
            try:
                run = self._run(work, tools=tools, first_seconds=_CHECK_SECONDS if checking else None)
                async with aclosing(run) as words:
                    async for piece in words:
                        if not said:
                            said, self._takes_tools = True, tools
                            self._pause.end()
                        yield piece
                return
            except _FAULTS as error:
                if not said and tools and _refuses_tools(error):
                    tools = False
                    continue
                attempt += 1
                wait = self._patience.wait(attempt, _headers(error))
                late = asyncio.get_running_loop().time() + wait >= give_up
                if said or attempt >= tries or late or not _passing(error):
                    self._remember(error, said=said)
                    raise WriterUnavailable(f"{self._told(error)}{self._message(error)}") from error
            await asyncio.sleep(wait)
            if self._pause.resting and not checking:
                raise self._left_alone()  # others have found out meanwhile

    def _remember(self, error: Exception, *, said: bool) -> None:
        """Whether the next question is worth a try: not where it would meet the same fault."""
        if _everybodys(error) and not said:
            self._pause.begin(self._told(error))
        elif isinstance(error, APIStatusError):
            self._pause.end()  # it answers

    def _left_alone(self) -> WriterUnavailable:
        return WriterUnavailable(
            f"{self._provider.name} failed a moment ago ({self._pause.reason}) and is left alone for now"
        )

    async def reach(self) -> None:
        """Asks at most every few seconds; a fault is told without its vendor's words, as anybody may ask."""
        if self._now() >= self._ask_again:
            self._ask_again, self._unreached = self._now() + _PROBE_SECONDS, ""
            try:
                async with asyncio.timeout(_CHECK_SECONDS):
                    await self._client.models.list()
            except _FAULTS as error:
                if not isinstance(error, APIStatusError) or error.status_code in (401, 403) or error.status_code >= 500:
                    self._unreached = self._told(error)
        if reason := self._unreached or (self._pause.reason if self._pause.resting else ""):
            raise WriterUnavailable(reason)

    async def close(self) -> None:
        await self._client.close()

    async def _run(
        self, work: WritingTask, *, tools: bool, first_seconds: float | None
    ) -> AsyncGenerator[str | TokenUsage, None]:
        """One run of the agent, to its end or to its first fault."""
        heard: _Words = asyncio.Queue()
        model = _Heard(self._provider.model, self._client, heard)
        agent = Agent(
            name="Citewell",
            instructions=sendable(work.instructions),
            model=model,
            tools=[_tool(work.search, heard)] if work.search and tools else [],
            model_settings=ModelSettings(
                temperature=self._provider.temperature,
                max_tokens=None if self._provider.thinks else work.max_tokens,
                include_usage=True,
                store=False if self._provider.base_url.startswith("https://api.openai.com") else None,
            ),
        )
        config = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")
        run = Runner.run_streamed(agent, _messages(work), run_config=config, max_turns=_TURNS)
        ending = asyncio.create_task(_end(run, heard))
        silent = True
        seconds = min(first_seconds or self._patience.try_seconds, self._patience.try_seconds)
        try:
            while True:
                async with asyncio.timeout(seconds):
                    said = await heard.get()
                match said:
                    case Exception():
                        raise said
                    case None:
                        break
                    case words:
                        seconds = self._patience.try_seconds
                        if words:
                            silent = False
                            yield words
            if silent:
                raise _Silent
            used = run.context_wrapper.usage
            cut = not self._provider.thinks and model.last_written >= work.max_tokens
            yield TokenUsage(used.input_tokens or None, used.output_tokens or None, cut)
        finally:
            run.cancel()
            ending.cancel()
            await asyncio.wait([ending])

    def _told(self, error: Exception) -> str:
        """What went wrong, in words of ours."""
        name = self._provider.name
        match error:
            case APIStatusError(status_code=401 | 403 as status):
                words = f"{name} refuses the key in {self._provider.key_name} (status {status})"
            case APIStatusError(status_code=status):
                words = f"{name} answered with status {status}"
            case APITimeoutError() | TimeoutError():
                words = f"{name} did not answer in time"
            case APIConnectionError() | httpx2.HTTPError():
                words = f"{name} cannot be reached, or broke off ({type(error.__cause__ or error).__name__})"
            case APIError():
                words = f"{name} broke off"
            case ModelRefusalError():
                words = f"{self.model} declined to answer"
            case _Silent():
                words = f"{self.model} wrote nothing"
            case MaxTurnsExceeded():
                words = f"{self.model} kept searching and wrote nothing"
            case _:
                words = f"the answer of {name} makes no sense"
        return words

    def _message(self, error: Exception) -> str:
        """What the server says itself, where it says it as documented; a proxy's page is nobody's message."""
        body = error.body if isinstance(error, APIError) else None
        message = body.get("message") if isinstance(body, dict) else None
        if not isinstance(message, str) or (isinstance(error, APIStatusError) and error.status_code in (401, 403)):
            return ""
        shown = message.replace(self._key, "…") if self._key else message
        return f": {' '.join(shown.split())[:200]}"


class _Heard(ChatModel):
    """Puts words aside as they come in: the SDK loses those that wait in its own queue when a stream breaks off."""

    def __init__(self, model: str, client: AsyncOpenAI, heard: _Words) -> None:
        super().__init__(model=model, openai_client=client)
        self._words = heard
        self._said = False
        self._half = ""
        self.last_written = 0
        """Tokens of the last turn."""

    async def stream_response(self, *args: Any, **how: Any) -> AsyncIterator[TResponseStreamEvent]:
        apart = "\n\n" if self._said else ""  # what was said before a search is no sentence of what comes after
        async for event in super().stream_response(*args, **how):
            if event.type == "response.output_text.delta" and event.delta:
                self._words.put_nowait(apart + self._whole(event.delta))
                self._said, apart = True, ""
            else:
                self._words.put_nowait("")
            if event.type == "response.completed" and event.response.usage:
                self.last_written = event.response.usage.output_tokens
            yield event

    def _whole(self, words: str) -> str:
        """The words, with what an earlier piece held the first half of; a server may cut an emoji in two."""
        if self._half or not words.isascii():
            words, self._half = self._half + words, ""
            if "\ud800" <= words[-1] <= "\udbff":
                words, self._half = words[:-1], words[-1]
            words = words.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return words


async def _end(run: RunResultStreaming, heard: "_Words") -> None:
    """See a run to its end; the last thing heard is None, or its fault."""
    try:
        async for _ in run.stream_events():
            pass
        heard.put_nowait(None)
    except _FAULTS as error:
        heard.put_nowait(error)
    finally:
        run.cancel()
        if (task := run.run_loop_task) is not None:
            await asyncio.wait([task])


class _Wanted(BaseModel):
    """What the tool may be asked for."""

    query: str = Field(min_length=1, max_length=1000, description="What to look for, in the book's own words.")
    limit: int = Field(5, ge=1, le=10, description="How many passages to give at most.")
    score_threshold: float = Field(0.0, ge=0.0, le=1.0, description="The least similarity a passage must have.")


# Just types and descriptions: some servers refuse what else a schema may say, and the limits are checked here anyway.
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        name: {"type": kind, "description": _Wanted.model_fields[name].description}
        for name, kind in (("query", "string"), ("limit", "integer"), ("score_threshold", "number"))
    },
    "required": ["query"],
}


def _tool(search: Search, heard: _Words) -> FunctionTool:
    left = _SEARCHES

    async def invoke(_context: object, arguments: str) -> str:
        nonlocal left
        if not left:
            return json.dumps({"results": [], "total_results": 0, "message": "No more searches. Answer now."})
        left -= 1
        try:
            wanted = _Wanted.model_validate_json(arguments)
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            return json.dumps({"results": [], "total_results": 0, "message": f"{wrong['loc']}: {wrong['msg']}"})
        found = await search(wanted.query, wanted.limit, wanted.score_threshold)
        heard.put_nowait("")
        return found

    return FunctionTool(
        name="search_book_content",
        description="Search the book for more passages. Each one found has a number to cite it by.",
        params_json_schema=_SCHEMA,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _messages(work: WritingTask) -> list[TResponseInputItem]:
    told: list[TResponseInputItem] = []
    for exchange in work.history:
        told.append({"role": "user", "content": sendable(exchange.question)})
        if exchange.answer:
            told.append({"role": "assistant", "content": sendable(exchange.answer)})
    return [*told, {"role": "user", "content": sendable(work.prompt)}]


def _refuses_tools(error: Exception) -> bool:
    """Whether a server turns the request down because its model cannot call tools."""
    return isinstance(error, APIStatusError) and 400 <= error.status_code < 502 and bool(_NO_TOOLS.search(str(error)))


def _headers(error: Exception) -> Mapping[str, str]:
    return error.response.headers if isinstance(error, APIStatusError) else {}


def _passing(error: Exception) -> bool:
    """Whether another try may succeed."""
    if isinstance(error, APIStatusError):
        return error.status_code in (408, 409, 429) or error.status_code >= 500
    return not isinstance(error, AgentsException | _Silent)


def _everybodys(error: Exception) -> bool:
    """Whether the next question would meet the same fault: not, where this one was too long or not to its taste."""
    if isinstance(error, APIStatusError):
        return error.status_code not in (400, 413, 422)
    return not isinstance(error, AgentsException | _Silent)
