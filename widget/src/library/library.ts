/** The library page for authors: documents, ingests, unanswered questions, votes and evaluation scores. */

import { Client } from "../api/client";
import { ApiError } from "../api/errors";
import type { components } from "../api/schema";
import { h } from "../dom/elements";
import { createKeyForm } from "../dom/key-form";
import { tabStorage } from "../dom/storage";
import { DocumentTable } from "./documents";
import { errorMessage } from "./errors";
import { renderEvaluation, renderGaps, renderIngest, renderVotes } from "./reports";
import { renderCount, Section } from "./section";

type Schemas = components["schemas"];
type Project = Schemas["Project"];

const KEY = "citewell-admin-key";
const REFRESH_MS = 2000;
const HIDDEN_REFRESH_MS = 10_000;
const MAX_INGESTS = 5;
const MAX_GAPS = 50; // the server returns no more

interface LibraryData {
  documents: Schemas["Document"][];
  ingests: Schemas["Ingest"][];
  gaps: Schemas["Gap"][];
  feedback: Schemas["FeedbackReport"];
  evaluation: Schemas["EvaluationReport"];
}

export class Library {
  readonly element = h("main");
  readonly #projectPicker = h("select", { on: { change: () => this.#pickProject(this.#projectPicker.value) } });
  readonly #projectLabel = h("label", { class: "picker", hidden: true }, "Project ", this.#projectPicker);
  readonly #notice = h("div", { role: "alert" });
  readonly #counts = h("ul", { class: "counts" });
  readonly #ingests = new Section("Ingests", "No ingest has run yet.");
  readonly #gaps = new Section("Unanswered questions", "No unanswered questions yet.");
  readonly #votes = new Section("Votes", "No votes yet.");
  readonly #evaluation = new Section("Evaluation", "No evaluation yet: run `citewell eval questions.jsonl`.");
  readonly #documents = new DocumentTable();
  readonly #content = h(
    "div",
    { class: "parts", hidden: true },
    this.#counts,
    ...[this.#ingests, this.#gaps, this.#votes, this.#evaluation, this.#documents].map(({ element }) => element),
  );
  #client = new Client({ server: "", key: tabStorage.get(KEY), project: null });
  #projectId: string | null = null;
  #refreshNumber = 0;
  #timer = 0;

  constructor() {
    const chatLink = h("a", { href: new URL("/chat", location.href).href }, "Ask a question");
    const header = h("header", {}, h("h1", {}, "Library"), h("nav", {}, chatLink));
    this.element.append(header, this.#projectLabel, this.#notice, this.#content);
  }

  /** Load and show everything, now and every few seconds. */
  async refresh(): Promise<void> {
    clearTimeout(this.#timer);
    const number = ++this.#refreshNumber;
    const isCurrent = (): boolean => number === this.#refreshNumber;
    let shouldRepeat = true;
    try {
      const data = await this.#load();
      if (isCurrent()) this.#show(data);
    } catch (error) {
      if (isCurrent()) shouldRepeat = this.#showError(error);
    }
    const wait = document.hidden ? HIDDEN_REFRESH_MS : REFRESH_MS;
    if (shouldRepeat && isCurrent()) this.#timer = window.setTimeout(() => void this.refresh(), wait);
  }

  async #load(): Promise<LibraryData> {
    const client = this.#client;
    const { projects } = await client.get<Schemas["ProjectList"]>("/api/v1/projects");
    const project = projects.find(({ id }) => id === this.#projectId) ?? projects.find(({ documents }) => documents > 0) ?? projects[0]!;
    if (project.documents) this.#projectId = project.id;
    this.#showProjects(projects, project);
    const url = `/api/v1/projects/${project.id}`;
    const [{ documents }, { ingests }, { gaps }, feedback, evaluation] = await Promise.all([
      client.get<Schemas["DocumentList"]>(`${url}/documents`),
      client.get<Schemas["IngestList"]>(`${url}/ingests`),
      client.get<Schemas["GapList"]>(`${url}/gaps`),
      client.get<Schemas["FeedbackReport"]>(`${url}/feedback`),
      client.get<Schemas["EvaluationReport"]>(`${url}/evaluation`),
    ]);
    return { documents, ingests, gaps, feedback, evaluation };
  }

  #showProjects(projects: Project[], current: Project): void {
    const names = projects.map(({ name, documents }) => `${name} (${documents})`);
    if (names.join("\n") !== [...this.#projectPicker.options].map(({ text }) => text).join("\n")) {
      this.#projectPicker.replaceChildren(...projects.map(({ id }, index) => h("option", { value: id }, names[index])));
    }
    this.#projectPicker.value = current.id;
    this.#projectLabel.hidden = projects.length < 2;
  }

  #pickProject(id: string): void {
    this.#projectId = id;
    void this.refresh();
  }

  #show(data: LibraryData): void {
    const { documents, ingests, gaps, feedback, evaluation } = data;
    this.#notice.replaceChildren();
    this.#content.hidden = false;
    this.#showCounts(data);
    this.#ingests.show(ingests, () => ingests.slice(0, MAX_INGESTS).map(renderIngest));
    this.#gaps.show(gaps, () => renderGaps(gaps));
    this.#votes.show(feedback, () => renderVotes(feedback));
    this.#evaluation.show(evaluation, () => renderEvaluation(evaluation));
    this.#documents.show(documents, this.#client);
  }

  #showCounts({ documents, gaps, feedback }: LibraryData): void {
    const chunks = documents.reduce((sum, { chunkCount }) => sum + chunkCount, 0);
    const failed = documents.filter(({ status }) => status === "FAILED").length;
    const manyGaps = `unanswered questions${gaps.length === MAX_GAPS ? " or more" : ""}`;
    this.#counts.replaceChildren(
      renderCount(documents.length, "document", "documents"),
      renderCount(chunks, "chunk", "chunks"),
      ...(failed ? [renderCount(failed, "failed")] : []),
      renderCount(gaps.length, "unanswered question", manyGaps),
      renderCount(feedback.up, "helped"),
      renderCount(feedback.down, "did not help"),
    );
  }

  /** Show an error above the content, which stays. Returns whether to try again. */
  #showError(error: unknown): boolean {
    if (error instanceof ApiError && error.failure.kind === "key") {
      this.#askForKey(error.failure.message);
      return false;
    }
    const text = `${errorMessage(error)} This page retries every few seconds.`;
    if (this.#notice.textContent !== text) this.#notice.replaceChildren(h("p", { class: "bad", dir: "auto" }, text));
    return true;
  }

  /** Hide everything and ask for a key. */
  #askForKey(reason: string): void {
    const form = createKeyForm("Admin key", "Use this key", (key) => {
      tabStorage.set(KEY, key);
      this.#client = new Client({ server: "", key, project: null });
      void this.refresh();
    });
    this.#content.hidden = this.#projectLabel.hidden = true;
    this.#notice.replaceChildren(
      h("p", { dir: "auto" }, "This page needs an admin key. ", h("span", { class: "quiet" }, reason)),
      form,
    );
    form.querySelector("input")!.focus();
  }
}
