/** A conversation as it goes: asks, listens, stops, restores. Knows the server and the state, and no element. */

import { type Client, Problem } from "./client";
import { Memory, uuid } from "./memory";
import type { Conversation, Failure, Selection, Told, Vote } from "./model";
import { type Action, begin, reduce } from "./reducer";

const AT_ONCE = 8; // exchanges that are fetched together: drawing more takes long enough to be felt

export class Talk {
  state: Conversation;
  #hearers: ((state: Conversation) => void)[] = [];
  #stopping: AbortController | null = null;
  #memory: Memory;
  #others: BroadcastChannel | null;
  #recalling = false;

  constructor(readonly client: Client) {
    // A session belongs to the key that began it; of that only the public part is used.
    const { server, project, key } = client.where;
    const name = ["citewell", server, project ?? "", ...(key ? [key.split("_")[1]] : [])].join(":");
    this.#memory = new Memory(name);
    this.state = begin(this.#memory.session() ?? uuid());
    this.#others = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(name);
    this.#others?.addEventListener("message", ({ data }) => this.#otherTab(data));
  }

  hear(hearer: (state: Conversation) => void): void {
    this.#hearers.push(hearer);
  }

  end(): void {
    this.stop();
    this.#hearers = [];
    this.#others?.close();
    this.#others = null; // an answer that is being stopped has nobody to tell
  }

  /** Ask; an answer that is coming is stopped for it. */
  async ask(question: string, selection?: Selection): Promise<void> {
    if (this.state.streamingMessageId) {
      this.stop();
      this.#stopping = null;
      this.#do({ type: "stopped" });
    }
    const [id, once] = [uuid(), uuid()];
    this.#do({ type: "asked", id, question, selection, once, at: new Date() });
    await this.#listen(question, once, selection);
  }

  /** The same question again; where the server had an answer after all, that one. */
  async retry(answer: Told): Promise<void> {
    const { id, question, once, selection } = answer;
    if (!question || this.state.streamingMessageId) return;
    if (!once) return this.ask(question, selection);
    this.#do({ type: "retried", id, question, once, at: new Date() });
    await this.#listen(question, once, selection);
  }

  stop(): void {
    this.#stopping?.abort();
  }

  begin(): void {
    this.stop();
    this.#stopping = null;
    const sessionId = uuid();
    this.#memory.keep(sessionId);
    this.#do({ type: "begun", sessionId });
  }

  async vote(answer: Told, vote: Vote): Promise<void> {
    if (!answer.requestId) return;
    const before = answer.vote ?? null;
    this.#do({ type: "voted", id: answer.id, vote });
    try {
      await this.client.vote(this.state.sessionId, answer.requestId, vote);
    } catch (error) {
      this.#do({ type: "voted", id: answer.id, vote: before });
      throw error;
    }
  }

  /** The end of what was said before, from the server; more of it by `recall`. */
  async restore(): Promise<void> {
    const { sessionId } = this.state;
    if (!this.#memory.session()) return;
    let page = await this.client.history(sessionId, { limit: AT_ONCE, offset: 0 });
    const earlier = Math.max(0, page.total - AT_ONCE);
    if (earlier) page = await this.client.history(sessionId, { limit: AT_ONCE, offset: earlier });
    if (this.state.sessionId === sessionId) this.#do({ type: "restored", sessionId, messages: page.messages, earlier });
  }

  async recall(): Promise<void> {
    const { earlier, sessionId } = this.state;
    if (!earlier || this.#recalling) return;
    this.#recalling = true;
    try {
      const offset = Math.max(0, earlier - AT_ONCE);
      const { messages } = await this.client.history(sessionId, { limit: earlier - offset, offset });
      const still = this.state.sessionId === sessionId && this.state.earlier === earlier;
      if (still) this.#do({ type: "recalled", messages, earlier: offset });
    } finally {
      this.#recalling = false;
    }
  }

  async #listen(question: string, once: string, selection?: Selection): Promise<void> {
    const stopping = new AbortController();
    this.#stopping = stopping;
    const { sessionId } = this.state;
    this.#memory.keep(sessionId);
    try {
      for await (const heard of this.client.ask(question, { sessionId, selection, once, signal: stopping.signal })) {
        if (this.#stopping !== stopping) return;
        if (heard.type === "reached") this.#do(heard);
        else if (heard.outcome) this.#do({ type: "told", outcome: heard.outcome, sessionId });
        else this.#do({ type: "said", text: heard.content });
      }
    } catch (error) {
      if (this.#stopping !== stopping) return; // a new conversation was begun meanwhile
      this.#do(stopping.signal.aborted ? { type: "stopped" } : { type: "failed", failure: asFailure(error) });
    }
    this.#others?.postMessage({ sessionId });
  }

  /** Another tab said something in this conversation. */
  #otherTab(told: unknown): void {
    if ((told as { sessionId?: unknown } | null)?.sessionId !== this.state.sessionId) return;
    this.restore().catch(() => undefined); // this tab shows what it had
  }

  #do(action: Action): void {
    this.state = reduce(this.state, action);
    for (const hearer of this.#hearers) hearer(this.state);
  }
}

export function asFailure(error: unknown): Failure {
  // A connection that breaks while it is read is a TypeError too.
  return error instanceof Problem ? error.failure : { kind: navigator.onLine ? "cut" : "offline", message: "" };
}
