/** What an empty chat shows: an introduction, suggested questions, and what is wrong if the server cannot answer. */

import type { Welcome } from "../api/client";
import { type Failure, toFailure } from "../api/errors";
import { h } from "../dom/elements";
import { renderMarkdown } from "../markdown/markdown";
import type { ChatOptions } from "./options";

const RETRY_DELAYS_MS = [1000, 3000];

interface WelcomeEvents {
  onAsk(question: string): void;
  onWelcome(welcome: Welcome): void;
  createKeyForm(): HTMLElement | null;
}

export class WelcomeView {
  readonly element = h("div", { class: "welcome" });
  readonly projectPicker = h("div", { class: "picker" });

  constructor(
    private readonly options: ChatOptions,
    private readonly events: WelcomeEvents,
  ) {}

  /** Show the introduction, then what the server suggests. Never fails: an error is shown. */
  async load(): Promise<void> {
    this.#show(null, null);
    await this.#fetch(0).catch((error: unknown) => this.#showError(toFailure(error)));
  }

  /** The server prepares its questions once, so the first visitor may have to ask for them again. */
  async #fetch(attempt: number): Promise<void> {
    const { client, onProjectKnown } = this.options;
    const welcome = await client.welcome();
    onProjectKnown?.(welcome.project.id);
    if (client.connection.key) client.connection.project ??= welcome.project.id;
    this.events.onWelcome(welcome);
    this.#show(welcome, null);
    this.#showPicker(welcome);
    if (welcome.questions.length || !welcome.documents || attempt === RETRY_DELAYS_MS.length) return;
    setTimeout(() => this.element.isConnected && this.#fetch(attempt + 1).catch(() => undefined), RETRY_DELAYS_MS[attempt]);
  }

  #showError(failure: Failure): void {
    const { client, onPickProject } = this.options;
    const isProjectGone = failure.kind === "refused" && client.connection.project;
    if (isProjectGone && onPickProject) onPickProject("");
    else this.#show(null, failure);
  }

  #show(welcome: Welcome | null, failure: Failure | null): void {
    const { t, title = welcome?.title, welcome: text = welcome?.welcome } = this.options;
    const intro = text ?? (title ? t("introOf", { t: title }) : t("intro"));
    const parts: (Node | null)[] = [h("p", { class: "intro", dir: "auto" }, intro)];
    if (welcome?.documents === 0) parts.push(h("div", { class: "warn" }, renderMarkdown(t("empty"))));
    if (failure) {
      const reason = failure.kind === "refused" ? failure.message : t(failure.kind, { o: location.origin });
      parts.push(h("p", { class: "warn", role: "alert" }, reason));
    }
    if (failure?.kind === "key") parts.push(this.events.createKeyForm());
    const starters = welcome?.documents ? (this.options.questions ?? welcome.questions) : [];
    if (starters.length) {
      const questions = starters.map((question) =>
        h("li", {}, h("button", { type: "button", dir: "auto", on: { click: () => this.events.onAsk(question) } }, question)),
      );
      parts.push(
        h("p", { class: "quiet", id: "citewell-try" }, t("try")),
        h("ul", { class: "questions", "aria-labelledby": "citewell-try" }, ...questions),
      );
    }
    this.element.replaceChildren(...parts.filter((part) => part !== null));
  }

  #showPicker({ project, projects }: Welcome): void {
    const { t, onPickProject } = this.options;
    if (projects.length < 2 || !onPickProject) return;
    const options = projects.map(({ id, name }) => h("option", { value: id, selected: id === project.id }, name));
    const picker = h("select", { "aria-label": t("project"), on: { change: () => onPickProject(picker.value) } }, ...options);
    this.projectPicker.replaceChildren(picker);
  }
}
