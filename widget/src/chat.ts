/** The chat: header, conversation, composer and source panel, in the page or in a widget. */

import { asMarkdown, type Asks, headlineOf, scopeChip } from "./answer";
import type { Client, Welcome } from "./client";
import { copied } from "./clipboard";
import { CLOSE, FRESH, LATEST, SEND, STOP } from "./icons";
import { List } from "./list";
import { render } from "./markdown";
import { mathFrom } from "./math";
import type { Conversation, Selection, Told } from "./model";
import { Panel } from "./panel";
import { h, icon } from "./safe";
import { asFailure, Talk } from "./talk";
import { Tip } from "./tip";
import type { Words } from "./words";

const LONGEST_QUESTION = 32_000;
const NEAR_END = 80; // pixels
const ASK_AGAIN_MS = [1000, 3000];
const NOTED_MS = 3000;

export interface Setting {
  client: Client;
  say: Words;
  title: string;
  /** In a widget: what closes it. */
  close?: () => void;
  /** Where a key is asked for: what to do with the one that is given. */
  useKey?: (key: string) => void;
  /** Told which project is asked. */
  welcomed?: (id: string) => void;
  pickProject?: (id: string) => void;
}

export class Chat {
  readonly element: HTMLElement;
  readonly talk: Talk;
  readonly #setting: Setting;
  readonly #asks: Asks;
  readonly #tip = new Tip();
  readonly #panel: Panel;
  readonly #list: List;
  readonly #scroller: HTMLElement;
  readonly #earlier: HTMLButtonElement;
  readonly #welcome = h("div", { class: "welcome" });
  readonly #status = h("p", { class: "unseen", role: "status" });
  readonly #field: HTMLTextAreaElement;
  readonly #button: HTMLButtonElement;
  readonly #scope = h("div");
  readonly #latest: HTMLButtonElement;
  readonly #picker = h("div", { class: "picker" });
  #selection: Selection | undefined;
  #scheduled = false;
  #atEnd = true;
  #top = 0;
  #ready: Promise<void> = Promise.resolve();
  #noted = 0;
  readonly #grows = new ResizeObserver(() => this.#atEnd && this.#toEnd(false));

  constructor(setting: Setting) {
    this.#setting = setting;
    const { say, client } = setting;
    mathFrom(client.where.server);
    this.talk = new Talk(client);
    this.#panel = new Panel(client, say);
    this.#asks = {
      say,
      tip: this.#tip,
      open: (source, time, from) => {
        this.#tip.hide();
        void this.#panel.show(source, time, from);
      },
      retry: (answer) => {
        this.focus();
        void this.talk.retry(answer);
      },
      vote: (answer, vote) => void this.talk.vote(answer, vote).catch(() => this.#note(say("unvoted"))),
      copy: (answer) => void copied(asMarkdown(answer)).then((done) => this.#note(say(done ? "copied" : "uncopied"))),
      askWhole: (question) => void this.ask(question),
      keyForm: () => this.#keyForm(),
    };
    this.#list = new List(say("conversation"), this.#asks);
    this.#latest = h(
      "button",
      {
        type: "button",
        class: "latest",
        hidden: true,
        "aria-label": say("latest"),
        title: say("latest"),
        on: { click: () => this.#toEnd(true) },
      },
      icon(LATEST),
    );
    this.#earlier = h("button", { type: "button", class: "earlier", hidden: true, on: { click: () => this.#recall() } }, say("earlier"));
    this.#scroller = h(
      "div",
      { class: "scroller", tabindex: "0", role: "region", "aria-label": say("conversation"), on: { scroll: () => this.#scrolled() } },
      this.#welcome,
      this.#earlier,
      this.#list.element,
    );
    this.#field = h("textarea", {
      rows: "1",
      maxlength: String(LONGEST_QUESTION),
      placeholder: say("placeholder"),
      "aria-label": say("field"),
      dir: "auto",
      enterkeyhint: "send",
      on: { keydown: (event) => this.#typed(event) },
    });
    this.#button = h("button", { class: "send", type: "submit", "aria-label": say("send"), title: say("send") }, icon(SEND));
    const form = h(
      "form",
      { class: "composer", on: { submit: (event) => this.#submitted(event) } },
      this.#scope,
      h("div", { class: "line" }, this.#field, this.#button),
    );
    this.element = h(
      "div",
      { class: "chat", on: { keydown: (event) => this.#pressed(event) } },
      h("div", { class: "main" }, this.#header(), this.#scroller, this.#latest, form, this.#status),
      this.#panel.element,
      this.#tip.element,
    );
    this.#grows.observe(this.#list.element);
    this.talk.hear(() => this.#schedule());
    window.addEventListener("online", this.#online);
  }

  /** Fetch what was said before, and what could be asked. */
  async start(): Promise<void> {
    this.#greet(null);
    const welcome = this.#welcomed(0).catch((error: unknown) => this.#greet(null, error));
    // A key may be for one project, which the server names; till then it is not known where to ask.
    const { key, project } = this.#setting.client.where;
    this.#ready = key && !project ? welcome : Promise.resolve();
    const restored = this.#ready
      .then(() => this.talk.restore())
      .then(() => this.#toEnd(false))
      .catch((error: unknown) => {
        if (asFailure(error).kind !== "key") this.#note(this.#setting.say("unkept"));
      });
    await Promise.all([welcome, restored]);
  }

  async ask(question: string, selection?: Selection): Promise<void> {
    this.#atEnd = true;
    if (this.element.contains(this.#focused())) this.focus();
    await this.#ready;
    await this.talk.ask(question, selection);
  }

  /** Answer from this text alone until the reader says otherwise. */
  select(text: string): void {
    this.#selection = { text };
    this.#scope.replaceChildren(scopeChip(text, this.#setting.say, () => this.#unselect()));
    this.focus();
  }

  focus(): void {
    this.#field.focus();
  }

  /** Close the source, if one is open. Back at its mark, the reader has read the words. */
  closeSource(): void {
    this.#panel.close();
    this.#tip.hide();
  }

  end(): void {
    this.talk.end();
    this.#grows.disconnect();
    window.removeEventListener("online", this.#online);
    this.element.remove();
  }

  #unselect(): void {
    this.#selection = undefined;
    this.#scope.replaceChildren();
    this.focus();
  }

  #header(): HTMLElement {
    const { say, title, close } = this.#setting;
    const fresh = h(
      "button",
      { type: "button", class: "plain", "aria-label": say("fresh"), title: say("fresh"), on: { click: () => this.#fresh() } },
      icon(FRESH),
    );
    return h(
      "header",
      { class: "top" },
      h("h1", { dir: "auto" }, title),
      this.#picker,
      fresh,
      close &&
        h("button", { type: "button", class: "plain", "aria-label": say("close"), title: say("close"), on: { click: close } }, icon(CLOSE)),
    );
  }

  #fresh(): void {
    this.closeSource();
    this.talk.begin();
    this.#unselect();
  }

  #greet(told: Welcome | null, error?: unknown): void {
    const { say, welcomed, pickProject } = this.#setting;
    if (told) welcomed?.(told.project.id);
    const { where } = this.#setting.client;
    if (told && where.key) where.project ??= told.project.id;
    const failure = error === undefined ? null : asFailure(error);
    if (failure?.kind === "refused" && where.project && pickProject) return pickProject(""); // it is gone
    const parts: Node[] = [h("p", {}, say("intro"))];
    if (told?.documents === 0) parts.push(h("div", { class: "warn" }, render(say("empty"))));
    if (failure)
      parts.push(
        h("p", { class: "warn", role: "alert" }, failure.kind === "refused" ? failure.message : say(failure.kind, { o: location.origin })),
      );
    const form = failure?.kind === "key" ? this.#keyForm() : null;
    if (form) parts.push(form);
    if (told?.questions.length) {
      const ask = (question: string): HTMLElement =>
        h("li", {}, h("button", { type: "button", dir: "auto", on: { click: () => void this.ask(question) } }, question));
      parts.push(
        h("p", { class: "quiet", id: "citewell-try" }, say("try")),
        h("ul", { class: "questions", "aria-labelledby": "citewell-try" }, ...told.questions.map(ask)),
      );
    }
    this.#welcome.replaceChildren(...parts);
    if (told && told.projects.length > 1 && pickProject) {
      const options = told.projects.map(({ id, name }) => h("option", { value: id, selected: id === told.project.id }, name));
      const picker = h("select", { "aria-label": say("project"), on: { change: () => pickProject(picker.value) } }, ...options);
      this.#picker.replaceChildren(picker);
    }
  }

  /** The server makes its questions once; whoever comes first may have to ask again for them. */
  async #welcomed(times: number): Promise<void> {
    const told = await this.#setting.client.welcome();
    this.#greet(told);
    if (told.questions.length || !told.documents || times === ASK_AGAIN_MS.length) return;
    setTimeout(() => this.element.isConnected && this.#welcomed(times + 1).catch(() => undefined), ASK_AGAIN_MS[times]);
  }

  #keyForm(): HTMLElement | null {
    const { say, useKey } = this.#setting;
    if (!useKey) return null;
    const field = h("input", { type: "password", autocomplete: "off", required: true, "aria-label": say("keyField"), placeholder: "cw_…" });
    const use = (event: Event): void => {
      event.preventDefault();
      useKey(field.value.trim());
    };
    return h("form", { class: "key", on: { submit: use } }, field, h("button", { type: "submit" }, say("keySend")));
  }

  #typed(event: KeyboardEvent): void {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.#submitted(event);
  }

  /** Esc undoes one thing at a time: an excerpt, an answer that is coming, the panel, the widget. */
  #pressed(event: KeyboardEvent): void {
    if (event.key !== "Escape" || event.isComposing) return;
    const streaming = this.talk.state.streamingMessageId;
    const undone =
      this.#tip.hide() || (streaming ? (this.talk.stop(), true) : false) || (this.#panel.isOpen ? (this.closeSource(), true) : false);
    if (undone) event.preventDefault();
    else this.#setting.close?.();
    event.stopPropagation();
  }

  #submitted(event: Event): void {
    event.preventDefault();
    if (this.talk.state.streamingMessageId) {
      if (event.type === "submit") this.talk.stop();
      return;
    }
    const question = this.#field.value.trim();
    if (!question) return;
    this.#field.value = "";
    void this.ask(question, this.#selection);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const run = (): void => {
      this.#scheduled = false;
      this.#render(this.talk.state);
    };
    // A tab that is not looked at gets no frames.
    if (document.hidden) setTimeout(run, 0);
    else requestAnimationFrame(run);
  }

  #render(state: Conversation): void {
    const { say } = this.#setting;
    const streaming = state.streamingMessageId !== null;
    // Where the browser itself stays with what is being read, measuring would only cost a layout.
    const stays = CSS.supports("overflow-anchor", "auto") && this.#scroller.scrollTop > 0;
    const { first } = this.#list;
    const anchor = this.#atEnd || stays ? null : first;
    const top = anchor?.getBoundingClientRect().top;
    this.#list.show(state.messages).forEach((answer) => this.#told(answer));
    this.#welcome.hidden = state.messages.length > 0;
    this.#earlier.hidden = !state.earlier;
    this.#button.replaceChildren(icon(streaming ? STOP : SEND));
    this.#button.setAttribute("aria-label", say(streaming ? "stop" : "send"));
    this.#button.title = say(streaming ? "stop" : "send");
    this.element.toggleAttribute("data-streaming", streaming);
    if (this.#atEnd) this.#toEnd(false);
    else if (anchor?.isConnected && first !== this.#list.first) {
      // What was recalled went in above: stay with what is being read.
      this.#scroller.scrollTop += anchor.getBoundingClientRect().top - top!;
    }
    this.#latest.hidden = this.#atEnd;
  }

  /** Screen readers hear an answer once, whole, and not every word as it comes. */
  #told(answer: Told): void {
    const { say } = this.#setting;
    if (answer.standing === "failed") return; // an alert of its own
    if (answer.standing === "stopped") return this.#announce(say("stopped"));
    const headline = headlineOf(answer);
    const spoken = h(
      "div",
      {},
      render(answer.standing === "silent" ? "" : answer.content, { cite: () => h("span"), plain: true }),
    ).textContent;
    this.#announce([say("done"), headline && say(headline), spoken].filter(Boolean).join(" "));
  }

  #announce(words: string): void {
    this.#status.textContent = words;
  }

  /** The same for everybody to see, for a moment. */
  #note(words: string): void {
    this.#announce(words);
    this.#status.className = "note";
    clearTimeout(this.#noted);
    this.#noted = window.setTimeout(() => (this.#status.className = "unseen"), NOTED_MS);
  }

  #focused(): Element | null {
    return (this.element.getRootNode() as Document | ShadowRoot).activeElement;
  }

  #scrolled(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.#scroller;
    const near = scrollHeight - scrollTop - clientHeight < NEAR_END;
    // What grows below takes nobody away from the end; only scrolling up does.
    this.#atEnd = near || (this.#atEnd && scrollTop >= this.#top);
    this.#top = scrollTop;
    this.#latest.hidden = this.#atEnd;
    if (scrollTop < 400) this.#recall();
  }

  #recall(): void {
    this.talk.recall().catch(() => this.#note(this.#setting.say("unkept"))); // scrolling on tries again
  }

  #toEnd(smoothly: boolean): void {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.#scroller.scrollTo({ top: this.#scroller.scrollHeight, behavior: smoothly && !calm ? "smooth" : "instant" });
  }

  /** Back online: what failed for that reason alone is asked again. */
  #online = (): void => {
    const last = this.talk.state.messages.at(-1);
    if (last?.failure?.kind === "offline") void this.talk.retry(last);
  };
}
