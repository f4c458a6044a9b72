"""Writes with an LLM through the OpenAI Agents SDK: any server that speaks OpenAI's chat completions.

Knows how to call, retry and give up; nothing of what the task is about, or of what an answer does without a writer.
What leaves this machine is the writing task, and the results of the searches that it allows.
"""

import asyncio
import json
import logging
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

from citewell.adapters.vendors import checked_key, vendor_message
from citewell.adapters.windows import replace_surrogates
from citewell.errors import WriterUnavailable
from citewell.models import TokenUsage
from citewell.ports import Search, WritingTask
from citewell.retry import CircuitBreaker, RetryPolicy, RetryRules, is_transient_status, stream_with_retries

_log = logging.getLogger("citewell.adapters")

set_tracing_disabled(True)  # or the SDK would send every question to its vendor, whoever the LLM is

_CONNECT_SECONDS = 5.0
_PROBE_SECONDS = 5.0  # for the one attempt that finds out whether the server is back
_REACH_INTERVAL_SECONDS = 10.0
_MAX_TURNS = 5
_MAX_SEARCHES = 3
# What the SDK raises for a stream that is not as documented: it does not validate what it parses.
_MALFORMED = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
_NO_TOOLS = re.compile(r"support\w*\b.*\b(?:tool|function)|\b(?:tool|function)\w*\b.*\bsupport", re.IGNORECASE)
_ERRORS = (OpenAIError, httpx2.HTTPError, AgentsException, TimeoutError, *_MALFORMED)

_Events: TypeAlias = "asyncio.Queue[str | Exception | None]"
"""Events of a run: text, "" for any other sign of life, and at the end None or an error."""


@dataclass(frozen=True, slots=True)
class LlmEndpoint:
    """Where an LLM is reached, what its model is called there, and its limits."""

    name: str
    base_url: str
    model: str
    key: str = ""
    key_name: str = "CITEWELL_LLM_API_KEY"
    context_tokens: int = 8192
    temperature: float | None = None
    counts_reasoning: bool = False
    """Whether reasoning counts as output, so that a limit on the answer's tokens could leave no answer."""
    timeout_seconds: float = 30.0
    """How long its first words may take, retries included, and how long it may send nothing after them."""


class AgentsWriter:
    """Writes with one model. A circuit breaker stops calls for a while after the server failed."""

    def __init__(
        self,
        endpoint: LlmEndpoint,
        *,
        retry_policy: RetryPolicy | None = None,
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.model = endpoint.model
        self.context_tokens = endpoint.context_tokens
        self._endpoint = endpoint
        self._key = checked_key(endpoint.key, endpoint.key_name) if endpoint.key.strip() else ""
        seconds = endpoint.timeout_seconds
        default = RetryPolicy(attempt_seconds=seconds, total_seconds=seconds, backoff_seconds=0.5)
        self._policy = retry_policy or default
        self.first_words_seconds = self._policy.total_seconds
        self._breaker = CircuitBreaker(self._policy, now)
        self._supports_tools = True
        self._now = now
        self._next_probe = now()
        self._probe_error = ""
        attempt_seconds = self._policy.attempt_seconds
        self._client = AsyncOpenAI(
            api_key=self._key or "none",  # a local server needs no key, the SDK does
            base_url=endpoint.base_url,
            max_retries=0,  # `stream_with_retries` does that: the SDK does not retry after a broken stream
            timeout=httpx2.Timeout(attempt_seconds, connect=min(_CONNECT_SECONDS, attempt_seconds)),
        )

    async def write(self, task: WritingTask) -> AsyncGenerator[str | TokenUsage, None]:
        max_attempts = self._breaker.allowed_attempts()
        if not max_attempts:
            raise self._unavailable()
        is_probe = max_attempts < self._policy.max_attempts
        with_tools = self._supports_tools
        deadline = task.deadline or asyncio.get_running_loop().time() + self.first_words_seconds

        def start() -> AsyncGenerator[str | TokenUsage, None]:
            if self._breaker.is_open and not is_probe:
                raise self._unavailable()  # other calls have failed meanwhile
            first_seconds = _PROBE_SECONDS if is_probe else self._policy.attempt_seconds
            return self._run(task, with_tools=with_tools, deadline=deadline, first_seconds=first_seconds)

        def drop_tools(error: Exception) -> bool:
            nonlocal with_tools
            if not (with_tools and _refuses_tools(error)):
                return False
            with_tools = False
            return True

        pieces = stream_with_retries(
            start, policy=self._policy, rules=_RULES, max_attempts=max_attempts, deadline=deadline, recover=drop_tools
        )
        started = False
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if not started:
                        started, self._supports_tools = True, with_tools
                        self._breaker.close()
                    yield piece
        except (ModelRefusalError, MaxTurnsExceeded) as error:  # it works, and will not answer this question
            _log.warning("no answer was written: %s", self._describe(error))
            self._breaker.close()
        except _ERRORS as error:
            self._update_breaker(error, started=started)
            raise WriterUnavailable(f"{self._describe(error)}{self._vendor_message(error)}") from error

    def _update_breaker(self, error: Exception, *, started: bool) -> None:
        """Open the circuit if the next question would meet the same error."""
        if _affects_every_question(error) and not started:
            self._breaker.open(self._describe(error))
        elif isinstance(error, APIStatusError):
            self._breaker.close()  # the server responds

    def _unavailable(self) -> WriterUnavailable:
        return WriterUnavailable(
            f"{self._endpoint.name} failed a moment ago ({self._breaker.reason}) and is not retried yet"
        )

    async def reach(self) -> None:
        """Calls the server at most every few seconds. The error has no message of the vendor: anybody may see it."""
        if self._now() >= self._next_probe:
            self._next_probe, self._probe_error = self._now() + _REACH_INTERVAL_SECONDS, ""
            try:
                async with asyncio.timeout(_PROBE_SECONDS):
                    await self._client.models.list()
            except _ERRORS as error:
                if not isinstance(error, APIStatusError) or error.status_code in (401, 403) or error.status_code >= 500:
                    self._probe_error = self._describe(error)
        if reason := self._probe_error or (self._breaker.reason if self._breaker.is_open else ""):
            raise WriterUnavailable(reason)

    async def close(self) -> None:
        await self._client.close()

    async def _run(
        self, task: WritingTask, *, with_tools: bool, deadline: float, first_seconds: float
    ) -> AsyncGenerator[str | TokenUsage, None]:
        """One run of the agent, to its end or its first error.

        The first event may take `first_seconds`; the first words must have come at the deadline.
        """
        events: _Events = asyncio.Queue()
        model = _ReportingModel(self._endpoint.model, self._client, events)
        run = self._start_run(task, model, events, with_tools=with_tools)
        consumer = asyncio.create_task(_consume(run, events))
        has_text = False
        loop = asyncio.get_running_loop()
        seconds = min(first_seconds, self._policy.attempt_seconds)
        try:
            while True:
                end = loop.time() + seconds
                async with asyncio.timeout_at(end if has_text else min(end, deadline)):
                    event = await events.get()
                match event:
                    case Exception():
                        raise event
                    case None:
                        break
                    case text:
                        seconds = self._policy.attempt_seconds
                        if text:
                            has_text = True
                            yield text
            usage = run.context_wrapper.usage
            truncated = not self._endpoint.counts_reasoning and model.last_turn_tokens >= task.max_tokens
            yield TokenUsage(usage.input_tokens or None, usage.output_tokens or None, truncated)
        finally:
            run.cancel()
            consumer.cancel()
            await asyncio.wait([consumer])

    def _start_run(
        self, task: WritingTask, model: ChatModel, events: _Events, *, with_tools: bool
    ) -> RunResultStreaming:
        agent = Agent(
            name="Citewell",
            instructions=replace_surrogates(task.instructions),
            model=model,
            tools=[_search_tool(task.search, events)] if task.search and with_tools else [],
            model_settings=ModelSettings(
                temperature=self._endpoint.temperature,
                max_tokens=None if self._endpoint.counts_reasoning else task.max_tokens,
                include_usage=True,
                store=False if self._endpoint.base_url.startswith("https://api.openai.com") else None,
            ),
        )
        config = RunConfig(tracing_disabled=True, tool_not_found_behavior="return_error_to_model")
        return Runner.run_streamed(agent, _messages(task), run_config=config, max_turns=_MAX_TURNS)

    def _describe(self, error: Exception) -> str:
        """What went wrong, without the vendor's own message."""
        name = self._endpoint.name
        match error:
            case APIStatusError(status_code=401 | 403 as status):
                description = f"{name} refuses the key in {self._endpoint.key_name} (status {status})"
            case APIStatusError(status_code=status):
                description = f"{name} answered with status {status}"
            case APITimeoutError() | TimeoutError():
                description = f"{name} did not answer in time"
            case APIConnectionError() | httpx2.HTTPError():
                description = f"{name} cannot be reached, or broke off ({type(error.__cause__ or error).__name__})"
            case APIError():
                description = f"{name} broke off"
            case ModelRefusalError():
                description = f"{self.model} declined to answer"
            case MaxTurnsExceeded():
                description = f"{self.model} kept searching and wrote nothing"
            case _:
                description = f"the answer of {name} makes no sense"
        return description

    def _vendor_message(self, error: Exception) -> str:
        """The server's own message, if it has one; not that of a refused key, which may repeat the key."""
        if not isinstance(error, APIError) or (isinstance(error, APIStatusError) and error.status_code in (401, 403)):
            return ""
        return vendor_message(error.body, key=self._key)


class _ReportingModel(ChatModel):
    """Reports text as it arrives: the SDK loses what waits in its own queue when a stream breaks off."""

    def __init__(self, model: str, client: AsyncOpenAI, events: _Events) -> None:
        super().__init__(model=model, openai_client=client)
        self._events = events
        self._has_text = False
        self._half_character = ""
        self.last_turn_tokens = 0
        """Output tokens of the last turn."""

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        separator = "\n\n" if self._has_text else ""  # text before and after a search are different paragraphs
        async for event in super().stream_response(*args, **kwargs):
            if event.type == "response.output_text.delta" and event.delta:
                self._events.put_nowait(separator + self._join_halves(event.delta))
                self._has_text, separator = True, ""
            else:
                self._events.put_nowait("")
            if event.type == "response.completed" and event.response.usage:
                self.last_turn_tokens = event.response.usage.output_tokens
            yield event

    def _join_halves(self, text: str) -> str:
        """The text with characters joined that the server split in two, as it may do with an emoji."""
        if self._half_character or not text.isascii():
            text, self._half_character = self._half_character + text, ""
            if "\ud800" <= text[-1] <= "\udbff":
                text, self._half_character = text[:-1], text[-1]
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text


async def _consume(run: RunResultStreaming, events: _Events) -> None:
    """Drive a run to its end; the last event is None, or the error that ended it."""
    try:
        async for _ in run.stream_events():
            pass
        events.put_nowait(None)
    except _ERRORS as error:
        events.put_nowait(error)
    finally:
        run.cancel()
        if (task := run.run_loop_task) is not None:
            await asyncio.wait([task])


class _SearchArguments(BaseModel):
    """The arguments of the search tool."""

    query: str = Field(min_length=1, max_length=1000, description="What to look for, in the documents' own words.")
    limit: int = Field(5, ge=1, le=10, description="How many passages to give at most.")
    score_threshold: float = Field(0.0, ge=0.0, le=1.0, description="The least cosine similarity a passage must have.")


# Only types and descriptions: some servers refuse other parts of JSON Schema, and the limits are checked here anyway.
_SEARCH_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        name: {"type": kind, "description": _SearchArguments.model_fields[name].description}
        for name, kind in (("query", "string"), ("limit", "integer"), ("score_threshold", "number"))
    },
    "required": ["query"],
}


def _search_tool(search: Search, events: _Events) -> FunctionTool:
    remaining = _MAX_SEARCHES

    async def invoke(_context: object, arguments: str) -> str:
        nonlocal remaining
        if not remaining:
            return json.dumps({"results": [], "total_results": 0, "message": "No more searches. Answer now."})
        remaining -= 1
        try:
            valid = _SearchArguments.model_validate_json(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return json.dumps({"results": [], "total_results": 0, "message": f"{first['loc']}: {first['msg']}"})
        results = await search(valid.query, valid.limit, valid.score_threshold)
        events.put_nowait("")
        return results

    return FunctionTool(
        name="search_book_content",
        description="Search the documents for more passages. Each one found has a number to cite it by.",
        params_json_schema=_SEARCH_SCHEMA,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _messages(task: WritingTask) -> list[TResponseInputItem]:
    messages: list[TResponseInputItem] = []
    for exchange in task.history:
        messages.append({"role": "user", "content": replace_surrogates(exchange.question)})
        if exchange.answer:
            messages.append({"role": "assistant", "content": replace_surrogates(exchange.answer)})
    return [*messages, {"role": "user", "content": replace_surrogates(task.prompt)}]


def _refuses_tools(error: Exception) -> bool:
    """Whether the server refuses the request because its model cannot call tools."""
    return isinstance(error, APIStatusError) and 400 <= error.status_code < 502 and bool(_NO_TOOLS.search(str(error)))


def _headers(error: Exception) -> Mapping[str, str]:
    return error.response.headers if isinstance(error, APIStatusError) else {}


def _is_transient(error: Exception) -> bool:
    if isinstance(error, APIStatusError):
        return is_transient_status(error.status_code) or error.status_code == 409
    return not isinstance(error, AgentsException)


_RULES = RetryRules(_ERRORS, _is_transient, _headers)


def _affects_every_question(error: Exception) -> bool:
    """Whether the next question would meet the same error: not if this one was too long, or refused by the model."""
    if isinstance(error, APIStatusError):
        return error.status_code not in (400, 413, 422)
    return not isinstance(error, AgentsException)
