/** One message as it is shown. An answer is drawn by the same hand while it grows, when it is done and when restored. */

import { AGAIN, COPY, DOWN, QUOTE, UP } from "./icons";
import { type Range, render } from "./markdown";
import type { Doubt, Source, Standing, Told, Vote } from "./model";
import { add, type Child, h, icon } from "./safe";
import type { Tip } from "./tip";
import type { Word, Words } from "./words";

/** What a message can ask of the chat that it stands in. */
export interface Asks {
  say: Words;
  tip: Tip;
  open(source: Source, time: number, from: HTMLElement): void;
  retry(answer: Told): void;
  vote(answer: Told, vote: Vote): void;
  copy(answer: Told): void;
  askWhole(question: string): void;
  /** Offer a key, where one is asked for. */
  keyForm(): HTMLElement | null;
}

const HEADLINES: Partial<Record<Standing, Word>> = {
  unsure: "unsure",
  uncovered: "uncovered",
  "outside-selection": "outside",
  silent: "silent",
};

export function headlineOf({ standing }: Told): Word | undefined {
  return standing && HEADLINES[standing];
}

export function show(message: Told, asks: Asks): HTMLElement {
  const item = h("div", { class: `message ${message.role}`, role: "listitem", "data-standing": message.standing });
  draw(item, message, asks);
  return item;
}

/** Draw a message anew; who had the focus in it has it still. */
export function draw(item: HTMLElement, message: Told, asks: Asks): void {
  const reachable = (): HTMLElement[] => [...item.querySelectorAll<HTMLElement>("button, a[href], [tabindex]")];
  const focused = (item.getRootNode() as Document).activeElement;
  const place = focused ? reachable().indexOf(focused as HTMLElement) : -1;
  fill(item, message, asks);
  if (place >= 0)
    reachable()
      .at(Math.min(place, reachable().length - 1))
      ?.focus();
}

function fill(item: HTMLElement, message: Told, asks: Asks): void {
  const { say } = asks;
  if (message.role === "user") {
    const bubble = h("div", { class: "bubble" }, h("span", { class: "unseen" }, `${say("you")}: `));
    if (message.selection) add(bubble, h("blockquote", { class: "scope", dir: "auto" }, shortened(message.selection.text, 160)));
    add(bubble, h("div", { dir: "auto" }, message.content));
    item.replaceChildren(bubble);
    return;
  }
  if (message.standing) item.dataset.standing = message.standing;
  else delete item.dataset.standing;
  const headline = headlineOf(message);
  const bubble = h("div", { class: "bubble" }, h("span", { class: "unseen" }, `${say("answer")}: `));
  if (headline) add(bubble, h("p", { class: "headline" }, say(headline)));
  // What the headline and the list of topics say need not be said a third time.
  const told = message.standing === "silent" || (message.standing === "uncovered" && message.nearest?.length);
  if (message.content && !told) {
    add(
      bubble,
      h(
        "div",
        { class: "words", dir: "auto" },
        render(message.content, {
          cite: citing(message, asks),
          ...doubted(message.content, message.doubts ?? [], asks),
        }),
      ),
    );
  }
  if (message.isStreaming) {
    const stage = message.stage ?? "retrieving";
    add(
      bubble,
      message.content
        ? null
        : h("p", { class: "typing" }, h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")), say(stage)),
    );
    item.replaceChildren(bubble);
    return;
  }
  add(bubble, ...outcome(message, asks));
  item.replaceChildren(bubble);
}

function outcome(message: Told, asks: Asks): Child[] {
  const { say } = asks;
  const parts: Child[] = [];
  if (message.standing === "stopped") parts.push(h("p", { class: "quiet" }, say("stopped")));
  if (message.failure) parts.push(failed(message, asks));
  if (message.notice) parts.push(h("p", { class: "quiet", dir: "auto" }, message.notice));
  if (message.nearest?.length) {
    parts.push(
      h("p", { class: "quiet" }, say("nearest")),
      h(
        "ul",
        { class: "topics" },
        ...message.nearest.map((topic) =>
          h("li", {}, topic.url ? h("a", { href: topic.url, dir: "auto" }, path(topic.title)) : h("bdi", {}, path(topic.title))),
        ),
      ),
    );
  }
  if (message.citations?.length) parts.push(sources(message.citations, asks));
  if (message.standing === "outside-selection" && message.question) {
    const { question } = message;
    parts.push(h("button", { type: "button", class: "offer", on: { click: () => asks.askWhole(question) } }, say("wholeBook")));
  }
  parts.push(actions(message, asks));
  return parts;
}

/** The marks in an answer; while it grows, its sources are not known yet. */
function citing(message: Told, asks: Asks): (number: number, time: number) => Node | null {
  return (number, time) => {
    if (message.selection) return document.createTextNode(""); // the reader has it before them
    if (message.isStreaming || !message.citations) return h("sup", { class: "mark" }, String(number));
    const source = message.citations[number - 1];
    return source ? mark(source, number, time, asks) : null;
  };
}

function mark(source: Source, number: number, time: number, asks: Asks): HTMLElement {
  const label = `${asks.say("source", { n: number })}: ${[source.chapterTitle, source.section].filter(Boolean).join(", ")}`;
  const made = h("button", { type: "button", class: "mark", "aria-label": label }, String(number));
  made.addEventListener("click", () => asks.open(source, time, made));
  asks.tip.at(made, source, source.quotes[time] ?? null);
  return made;
}

/** The sentences that their sources do not bear out, each with a quiet mark behind it. */
function doubted(content: string, doubts: Doubt[], { say }: Asks): { ranges: Range[]; behind: (range: Range) => Node } {
  const ranges: Range[] = [];
  let from = 0;
  for (const { sentence, verdict } of doubts) {
    const found = inside(content, sentence, from);
    if (!found) continue;
    from = found.end;
    ranges.push({ ...found, kind: verdict });
  }
  const behind = ({ kind }: Range): Node => {
    const why = say(kind as Doubt["verdict"]);
    return h("span", { class: `doubt ${kind}`, role: "img", tabindex: "0", "aria-label": why, title: why }, kind === "weak" ? "~" : "?");
  };
  return { ranges, behind };
}

/** Where a sentence stands in an answer that has marks in it, also before the full stop. */
function inside(content: string, sentence: string, from: number): { start: number; end: number } | null {
  const parts = sentence.replace(/[.!?\s]+$/, "").match(/[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu);
  if (!parts) return null;
  const escaped = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`${escaped.join("(?:\\s|\\[\\d+\\])*")}(?:[.!?]|\\s*\\[\\d+\\])*`, "gu");
  pattern.lastIndex = from;
  const found = pattern.exec(content);
  return found && { start: found.index, end: pattern.lastIndex };
}

function sources(citations: Source[], asks: Asks): HTMLElement {
  const { say } = asks;
  const list = h("ol", { class: "sources", "aria-label": say("sources") });
  citations.forEach((source, index) => {
    const place = [source.chapterTitle, source.section].filter(Boolean).join(" › ");
    const opener = h("button", { type: "button" }, h("span", { class: "number" }, String(index + 1)), h("bdi", {}, place));
    opener.addEventListener("click", () => asks.open(source, 0, opener));
    const item = h("li", {}, opener);
    const { status } = source;
    if (status && status !== "valid") add(item, h("span", { class: "badge" }, say(`badge-${status}`)));
    add(list, item);
  });
  return list;
}

function failed(message: Told, asks: Asks): HTMLElement {
  const failure = message.failure!;
  const plain = failure.kind === "refused" ? failure.message : asks.say(failure.kind, { o: location.origin });
  const detail = failure.kind === "unavailable" || failure.kind === "broken" ? failure.message : "";
  const shown = h("div", { class: "failure", role: "alert", "data-kind": failure.kind }, render(plain));
  if (detail) add(shown, h("p", { class: "quiet", dir: "auto" }, detail));
  add(shown, failure.kind === "key" ? asks.keyForm() : again(message, asks));
  return shown;
}

/** A button that waits as long as the server asked to. */
function again(message: Told, asks: Asks): HTMLElement {
  const { say } = asks;
  const words = h("span");
  const button = h("button", { type: "button", class: "retry", on: { click: () => asks.retry(message) } }, icon(AGAIN), words);
  const until = Date.now() + (message.failure?.retryAfterSeconds ?? 0) * 1000;
  const tick = (): void => {
    const left = Math.ceil((until - Date.now()) / 1000);
    button.disabled = left > 0;
    words.textContent = left > 0 ? say("retryIn", { n: left }) : say("retry");
    if (left > 0) setTimeout(tick, 250);
  };
  tick();
  return button;
}

function actions(message: Told, asks: Asks): HTMLElement {
  const { say } = asks;
  const bar = h("div", { class: "actions" });
  const act = (word: Word, drawing: string, does: () => void, pressed?: boolean): void =>
    add(
      bar,
      h(
        "button",
        {
          type: "button",
          class: "plain",
          "aria-label": say(word),
          title: say(word),
          "aria-pressed": pressed === undefined ? null : String(pressed),
          on: { click: does },
        },
        icon(drawing),
      ),
    );
  if (message.content && message.standing !== "silent") act("copy", COPY, () => asks.copy(message));
  if (message.standing === "stopped" && message.question && (message.once || !message.selection))
    act("retry", AGAIN, () => asks.retry(message));
  if (message.requestId && message.standing !== "stopped") {
    const { vote = null } = message;
    act("up", UP, () => asks.vote(message, vote === "up" ? null : "up"), vote === "up");
    act("down", DOWN, () => asks.vote(message, vote === "down" ? null : "down"), vote === "down");
  }
  if (message.confidence && message.standing !== "silent") {
    add(bar, h("span", { class: "quiet" }, say("confidence", { n: Math.round(message.confidence * 100) })));
  }
  return bar;
}

function path(title: string): string {
  return title.replaceAll(" > ", " › ");
}

/** The answer as Markdown, with where its marks lead. */
export function asMarkdown(answer: Told): string {
  const rows = (answer.citations ?? []).map((source, index) => {
    const place = [source.chapterTitle, source.section].filter(Boolean).join(" › ");
    return `[${index + 1}] ${place} (${source.url ?? source.sourceFile})`;
  });
  const content = answer.selection ? answer.content.replace(/\s*\[\d+\]/g, "") : answer.content;
  return [content, ...(rows.length ? ["", ...rows] : [])].join("\n");
}

export function scopeChip(text: string, say: Words, remove: () => void): HTMLElement {
  return h(
    "div",
    { class: "chip" },
    icon(QUOTE),
    h("div", {}, h("span", { class: "quiet" }, say("scope")), h("q", { dir: "auto" }, shortened(text, 120))),
    h("button", { type: "button", class: "plain", "aria-label": say("unscope"), title: say("unscope"), on: { click: remove } }, "×"),
  );
}

function shortened(text: string, most: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}
