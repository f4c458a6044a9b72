/** A conversation with the server: asks, streams answers, stops, votes and loads history. Knows nothing about the DOM. */

import type { Client, Vote } from "../api/client";
import { toFailure } from "../api/errors";
import { messagesFromHistory } from "./history";
import { randomUuid } from "./ids";
import { type Action, emptyConversation, reduce } from "./reducer";
import { SessionStore } from "./session";
import type { ChatMessage, ConversationState } from "./types";

const PAGE_SIZE = 8; // exchanges to load at once; drawing more takes noticeably long

type Listener = (state: ConversationState) => void;

export class Conversation {
  state: ConversationState;
  #listeners: Listener[] = [];
  #stream: AbortController | null = null;
  readonly #session: SessionStore;
  #otherTabs: BroadcastChannel | null;
  #loadingEarlier = false;

  constructor(readonly client: Client) {
    // A session belongs to the key that started it. Only the public part of the key goes into the name.
    const { server, project, key } = client.connection;
    const name = ["citewell", server, project ?? "", ...(key ? [key.split("_")[1]] : [])].join(":");
    this.#session = new SessionStore(name);
    this.state = emptyConversation(this.#session.load() ?? randomUuid());
    this.#otherTabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(name);
    this.#otherTabs?.addEventListener("message", ({ data }) => this.#otherTabChanged(data));
  }

  subscribe(listener: Listener): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.stop();
    this.#listeners = [];
    this.#otherTabs?.close();
    this.#otherTabs = null; // the stream that is being stopped must not post to it
  }

  /** Ask a question. This stops an answer that is still streaming. */
  async ask(question: string, selectedText?: string): Promise<void> {
    if (this.state.streamingMessageId) {
      this.#abandonStream();
      this.#dispatch({ type: "stopped" });
    }
    const [id, idempotencyKey] = [randomUuid(), randomUuid()];
    this.#dispatch({ type: "asked", id, question, selectedText, idempotencyKey, at: new Date() });
    await this.#streamAnswer(question, idempotencyKey, selectedText);
  }

  /** Ask the same question again. If the server has stored an answer meanwhile, it returns that one. */
  async retry({ id, question, idempotencyKey, selectedText }: ChatMessage): Promise<void> {
    if (!question || this.state.streamingMessageId) return;
    if (!idempotencyKey) return this.ask(question, selectedText);
    this.#dispatch({ type: "retried", id, question, idempotencyKey });
    await this.#streamAnswer(question, idempotencyKey, selectedText);
  }

  stop(): void {
    this.#stream?.abort();
  }

  /** Start a new conversation. */
  reset(): void {
    this.#abandonStream();
    const sessionId = randomUuid();
    this.#session.save(sessionId);
    this.#dispatch({ type: "reset", sessionId });
  }

  async vote({ id, requestId, vote: before = null }: ChatMessage, vote: Vote): Promise<void> {
    if (!requestId) return;
    this.#dispatch({ type: "voted", id, vote });
    try {
      await this.client.vote(this.state.sessionId, requestId, vote);
    } catch (error) {
      this.#dispatch({ type: "voted", id, vote: before });
      throw error;
    }
  }

  /** Load the latest messages of this session; `loadEarlier` loads more. */
  async restore(): Promise<void> {
    const { sessionId } = this.state;
    if (!this.#session.load()) return;
    let page = await this.client.history(sessionId, { limit: PAGE_SIZE, offset: 0 });
    const earlier = Math.max(0, page.total_entries - PAGE_SIZE);
    if (earlier) page = await this.client.history(sessionId, { limit: PAGE_SIZE, offset: earlier });
    if (this.state.sessionId !== sessionId) return;
    this.#dispatch({ type: "history-loaded", messages: messagesFromHistory(page, earlier), earlier });
  }

  async loadEarlier(): Promise<void> {
    const { earlier, sessionId } = this.state;
    if (!earlier || this.#loadingEarlier) return;
    this.#loadingEarlier = true;
    try {
      const offset = Math.max(0, earlier - PAGE_SIZE);
      const page = await this.client.history(sessionId, { limit: earlier - offset, offset });
      if (this.state.sessionId !== sessionId || this.state.earlier !== earlier) return;
      this.#dispatch({ type: "earlier-loaded", messages: messagesFromHistory(page, offset), earlier: offset });
    } finally {
      this.#loadingEarlier = false;
    }
  }

  async #streamAnswer(question: string, idempotencyKey: string, selectedText?: string): Promise<void> {
    const stream = new AbortController();
    this.#stream = stream;
    const { sessionId } = this.state;
    this.#session.save(sessionId);
    try {
      for await (const event of this.client.ask(question, { sessionId, selectedText, idempotencyKey, signal: stream.signal })) {
        if (this.#stream !== stream) return; // abandoned meanwhile
        this.#dispatch(event);
      }
    } catch (error) {
      if (this.#stream !== stream) return;
      this.#dispatch(stream.signal.aborted ? { type: "stopped" } : { type: "failed", failure: toFailure(error) });
    }
    this.#otherTabs?.postMessage({ sessionId });
  }

  /** Stop the stream and ignore whatever it still delivers. */
  #abandonStream(): void {
    this.stop();
    this.#stream = null;
  }

  #otherTabChanged(data: unknown): void {
    if ((data as { sessionId?: unknown } | null)?.sessionId !== this.state.sessionId) return;
    this.restore().catch(() => undefined); // this tab goes on showing what it has
  }

  #dispatch(action: Action): void {
    this.state = reduce(this.state, action);
    for (const listener of this.#listeners) listener(this.state);
  }
}
