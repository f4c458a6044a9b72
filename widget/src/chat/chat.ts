/** The chat: header, conversation, composer and source panel. The chat page and the widget both show it. */

import { toFailure } from "../api/errors";
import type { Stage, Welcome } from "../api/client";
import { Conversation } from "../conversation/conversation";
import { cleanText, type Problem, questionProblem, selectionProblem } from "../conversation/limits";
import type { ChatMessage, ConversationState } from "../conversation/types";
import { copyText } from "../dom/clipboard";
import { focusedElement, h, iconButton, logoImage } from "../dom/elements";
import { CLOSE, PLUS } from "../dom/icons";
import { createKeyForm } from "../dom/key-form";
import { loadTypesetterFrom } from "../markdown/formula";
import { renderMarkdown } from "../markdown/markdown";
import { Announcer } from "./announcer";
import { answerAsMarkdown, type AnswerContext, headlineOf } from "./answer";
import { Composer } from "./composer";
import { MessageList } from "./message-list";
import type { ChatOptions } from "./options";
import { Scroller } from "./scroller";
import { SourcePanel } from "./source-panel";
import { Tooltip } from "./tooltip";
import { WelcomeView } from "./welcome";

export class Chat {
  readonly element: HTMLElement;
  readonly #options: ChatOptions;
  readonly #conversation: Conversation;
  readonly #announcer = new Announcer();
  readonly #tooltip = new Tooltip();
  readonly #panel: SourcePanel;
  readonly #welcome: WelcomeView;
  readonly #list: MessageList;
  readonly #earlierButton: HTMLButtonElement;
  readonly #scroller: Scroller;
  readonly #composer: Composer;
  readonly #answerContext: AnswerContext;
  readonly #heading = h("h1", { dir: "auto" });
  readonly #logo = h("span", { class: "brand" });
  #title: string | undefined;
  #isRenderScheduled = false;
  #announcedStage: Stage | null = null;
  #ready: Promise<void> = Promise.resolve();

  constructor(options: ChatOptions) {
    this.#options = options;
    const { t, client } = options;
    this.#answerContext = this.#createAnswerContext();
    loadTypesetterFrom(client.connection.server);
    this.#conversation = new Conversation(client);
    this.#panel = new SourcePanel(client, t);
    this.#welcome = new WelcomeView(options, {
      onAsk: (question) => this.ask(question),
      onWelcome: (welcome) => this.#onWelcome(welcome),
      createKeyForm: () => this.#createKeyForm(),
    });
    this.#list = new MessageList(t("conversation"), this.#answerContext);
    const loadEarlier = (): void => this.#loadEarlier();
    this.#earlierButton = h("button", { type: "button", class: "earlier", hidden: true, on: { click: loadEarlier } }, t("earlier"));
    this.#scroller = new Scroller(t, this.#list, loadEarlier, this.#welcome.element, this.#earlierButton);
    this.#composer = new Composer(t, {
      onAsk: (question, selectedText) => this.ask(question, selectedText),
      onStop: () => this.#conversation.stop(),
    });
    const { element: scroller, endButton } = this.#scroller;
    this.element = h(
      "div",
      { class: "chat", on: { keydown: (event) => this.#onKeyDown(event) } },
      h("div", { class: "main" }, this.#createHeader(), scroller, endButton, this.#composer.element, this.#announcer.element),
      this.#panel.element,
      this.#tooltip.element,
    );
    this.#showTitle(options.title, options.hasLogo);
    this.#conversation.subscribe(() => this.#scheduleRender());
    window.addEventListener("online", this.#onOnline);
  }

  /** Load the conversation so far and the suggested questions. */
  async start(): Promise<void> {
    const welcome = this.#welcome.load();
    // A key may belong to one project. The welcome names it, and only then do we know where to ask.
    const { key, project } = this.#options.client.connection;
    this.#ready = key && !project ? welcome : Promise.resolve();
    const restored = this.#ready
      .then(() => this.#conversation.restore())
      .then(() => this.#scroller.scrollToEnd())
      .catch((error: unknown) => {
        if (toFailure(error).kind !== "key") this.#announcer.notify(this.#options.t("unkept"));
      });
    await Promise.all([welcome, restored]);
  }

  /** Ask a question; with a selected text, answer from that text only. Returns false, and says why, where the server would refuse it. */
  ask(question: string, selectedText?: string): boolean {
    const text = cleanText(question);
    const selection = selectedText && cleanText(selectedText);
    if (this.#showProblem(questionProblem(text) ?? (selectedText ? selectionProblem(selection!) : null))) return false;
    this.#scroller.follow();
    if (this.element.contains(focusedElement(this.element))) this.focus();
    void this.#ready.then(() => this.#conversation.ask(text, selection || undefined));
    return true;
  }

  /** Answer from this text only, until the reader removes it. */
  select(text: string): void {
    if (!this.#showProblem(selectionProblem(cleanText(text)))) this.#composer.select(text);
  }

  focus(): void {
    this.#composer.focus();
  }

  /** Close the source panel, if it is open. */
  closeSource(): void {
    this.#panel.close();
    this.#tooltip.hide(); // the focus returns to the mark, which would open its tooltip
  }

  destroy(): void {
    this.#conversation.close();
    this.#scroller.destroy();
    window.removeEventListener("online", this.#onOnline);
    this.element.remove();
  }

  #createAnswerContext(): AnswerContext {
    const { t } = this.#options;
    return {
      t,
      title: () => this.#title,
      tooltip: this.#tooltip,
      openSource: (source, occurrence, opener) => {
        this.#tooltip.hide();
        void this.#panel.show(source, occurrence, opener);
      },
      retry: (answer) => {
        this.focus();
        void this.#conversation.retry(answer);
      },
      vote: (answer, vote) => void this.#conversation.vote(answer, vote).catch(() => this.#announcer.notify(t("unvoted"))),
      copy: (answer) =>
        void copyText(answerAsMarkdown(answer)).then((copied) => this.#announcer.notify(t(copied ? "copied" : "uncopied"))),
      askAllDocuments: (question) => this.ask(question),
      createKeyForm: () => this.#createKeyForm(),
    };
  }

  #createHeader(): HTMLElement {
    const { t, onClose } = this.#options;
    return h(
      "header",
      { class: "top" },
      this.#logo,
      this.#heading,
      this.#welcome.projectPicker,
      iconButton("plain", PLUS, t("fresh"), () => this.#startNewConversation()),
      onClose && iconButton("plain", CLOSE, t("close"), onClose),
    );
  }

  #onWelcome({ title, logo }: Welcome): void {
    this.#showTitle(title ?? undefined, !!logo);
    this.#options.onHeading?.(this.#heading.textContent);
  }

  #showTitle(title: string | undefined, hasLogo = false): void {
    const { t, heading, client } = this.#options;
    this.#title = title;
    this.#heading.textContent = heading ?? title ?? t("title");
    if (hasLogo !== this.#logo.hasChildNodes()) this.#logo.replaceChildren(...(hasLogo ? [logoImage(client.connection.server)] : []));
  }

  /** Say why something cannot be asked, or nothing. Returns whether there is a reason. */
  #showProblem(problem: Problem | null): boolean {
    this.#composer.showProblem(problem ? this.#options.t(problem.key, problem.values) : "");
    return problem !== null;
  }

  #createKeyForm(): HTMLElement | null {
    const { t, onKey } = this.#options;
    return onKey ? createKeyForm(t("keyField"), t("keySend"), onKey) : null;
  }

  #startNewConversation(): void {
    this.closeSource();
    this.#conversation.reset();
    this.#render(this.#conversation.state); // at once: the next question must not wait for a frame
    this.#composer.deselect();
  }

  #loadEarlier(): void {
    // After an error, scrolling on tries again.
    this.#conversation.loadEarlier().catch(() => this.#announcer.notify(this.#options.t("unkept")));
  }

  /** Each press of Escape does one thing: hide the tooltip, stop the answer, close the panel, close the widget. */
  #onKeyDown(event: KeyboardEvent): void {
    if (event.key !== "Escape" || event.isComposing) return;
    event.stopPropagation();
    if (this.#tooltip.hide()) event.preventDefault();
    else if (this.#conversation.state.streamingMessageId) {
      event.preventDefault();
      this.#conversation.stop();
    } else if (this.#panel.isOpen) {
      event.preventDefault();
      this.closeSource();
    } else this.#options.onClose?.();
  }

  #scheduleRender(): void {
    if (this.#isRenderScheduled) return;
    this.#isRenderScheduled = true;
    const render = (): void => {
      this.#isRenderScheduled = false;
      this.#render(this.#conversation.state);
    };
    // A hidden tab gets no animation frames.
    if (document.hidden) setTimeout(render, 0);
    else requestAnimationFrame(render);
  }

  #render(state: ConversationState): void {
    const isStreaming = state.streamingMessageId !== null;
    this.#scroller.keepPosition(() => {
      this.#announceProgress(state);
      this.#list.show(state.messages).forEach((answer) => this.#announceAnswer(answer));
      this.#welcome.element.hidden = state.messages.length > 0;
      this.#earlierButton.hidden = !state.earlier;
      this.#composer.setStreaming(isStreaming);
      this.element.toggleAttribute("data-streaming", isStreaming);
    });
  }

  /** Screen readers hear that the answer is being looked up and written, until its first text arrives. */
  #announceProgress({ messages, streamingMessageId }: ConversationState): void {
    const answer = messages.find(({ id }) => id === streamingMessageId);
    const stage = answer && !answer.content ? (answer.stage ?? "retrieving") : null;
    if (stage && stage !== this.#announcedStage) this.#announcer.announce(this.#options.t(stage));
    this.#announcedStage = stage;
  }

  /** Screen readers hear a complete answer once, and not every word as it arrives. */
  #announceAnswer(answer: ChatMessage): void {
    const { t } = this.#options;
    if (answer.standing === "failed") return this.#announcer.announce(""); // the failure is an alert itself
    if (answer.standing === "stopped") return this.#announcer.announce(t("stopped"));
    const headline = headlineOf(answer, this.#answerContext);
    const markdown = renderMarkdown(answer.standing === "silent" ? "" : answer.content, { cite: () => h("span"), plain: true });
    const text = h("div", {}, markdown).textContent;
    this.#announcer.announce([t("done"), headline, text].filter(Boolean).join(" "));
  }

  /** Back online: ask again what failed for that reason. */
  #onOnline = (): void => {
    const last = this.#conversation.state.messages.at(-1);
    if (last?.failure?.kind === "offline") void this.#conversation.retry(last);
  };
}
