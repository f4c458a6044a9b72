/** The form at the bottom of the chat: the question field, the send or stop button, and the selection to ask about. */

import { h, icon } from "../dom/elements";
import { QUOTE, SEND, STOP } from "../dom/icons";
import type { Translate } from "../i18n/translations";
import { shorten } from "./message";

const MAX_SELECTION_LENGTH = 120;

interface ComposerEvents {
  /** Returns false where the question is not asked: then it stays in the field. */
  onAsk(question: string, selectedText: string | undefined): boolean;
  onStop(): void;
}

export class Composer {
  readonly element: HTMLFormElement;
  readonly #field: HTMLTextAreaElement;
  readonly #button = h("button", { class: "send", type: "submit" });
  readonly #selection = h("div");
  readonly #problem = h("p", { class: "problem", id: "citewell-problem" });
  #selectedText: string | undefined;
  #isStreaming = false;

  constructor(
    private readonly t: Translate,
    private readonly events: ComposerEvents,
  ) {
    this.#field = h("textarea", {
      rows: "1",
      placeholder: t("placeholder"),
      "aria-label": t("field"),
      dir: "auto",
      enterkeyhint: "send",
      "aria-describedby": "citewell-problem",
      on: { keydown: (event) => this.#onKeyDown(event), input: () => this.showProblem("") },
    });
    this.element = h(
      "form",
      { class: "composer", on: { submit: (event) => this.#onSubmit(event) } },
      this.#selection,
      h("div", { class: "line" }, this.#field, this.#button),
      this.#problem,
    );
    this.setStreaming(false);
  }

  focus(): void {
    this.#field.focus();
  }

  /** The button sends a question, or stops the answer that is streaming. */
  setStreaming(isStreaming: boolean): void {
    this.#isStreaming = isStreaming;
    const label = this.t(isStreaming ? "stop" : "send");
    this.#button.replaceChildren(icon(isStreaming ? STOP : SEND));
    this.#button.setAttribute("aria-label", label);
    this.#button.title = label;
  }

  /** Say why a question cannot be asked; "" where it can. */
  showProblem(text: string): void {
    this.#problem.replaceChildren(...(text ? [h("span", { role: "alert" }, text)] : []));
    this.#field.setAttribute("aria-invalid", String(!!text));
  }

  /** Ask about this text only, until the reader removes it. */
  select(text: string): void {
    this.#selectedText = text;
    const remove = h(
      "button",
      { type: "button", class: "plain", "aria-label": this.t("unscope"), title: this.t("unscope"), on: { click: () => this.deselect() } },
      "×",
    );
    const quote = h("q", { dir: "auto" }, shorten(text, MAX_SELECTION_LENGTH));
    const label = h("span", { class: "quiet" }, this.t("scope"));
    this.#selection.replaceChildren(h("div", { class: "chip" }, icon(QUOTE), h("div", {}, label, quote), remove));
    this.focus();
  }

  deselect(): void {
    this.#selectedText = undefined;
    this.showProblem("");
    this.#selection.replaceChildren();
    this.focus();
  }

  #onKeyDown(event: KeyboardEvent): void {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!this.#isStreaming) this.#ask();
  }

  #onSubmit(event: Event): void {
    event.preventDefault();
    if (this.#isStreaming) this.events.onStop();
    else this.#ask();
  }

  #ask(): void {
    if (this.events.onAsk(this.#field.value, this.#selectedText)) this.#field.value = "";
  }
}
