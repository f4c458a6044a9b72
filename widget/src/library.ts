/** `/library`: what an author wants to know. What is held, how ingests go, what readers missed, how answers score. */

import type { components } from "./api";
import { Client, Problem } from "./client";
import style from "./library.css?inline";
import { tab } from "./memory";
import { type Child, h } from "./safe";
import { dress } from "./style";

type Schemas = components["schemas"];
type Project = Schemas["Project"];
type Document_ = Schemas["Document"];
type Ingest = Schemas["Ingest"];

const KEY = "citewell-admin-key";
const LOOK_AGAIN_MS = 2000;
const AT_ONCE = 200;
const MOST_GAPS = 50; // that the server tells at once

interface Shown {
  documents: Document_[];
  ingests: Ingest[];
  gaps: Schemas["Gap"][];
  feedback: Schemas["FeedbackReport"];
  evaluation: Schemas["EvaluationReport"];
}

class Library {
  readonly element = h("main");
  readonly #top = h("header", {}, h("h1", {}, "Library"), h("nav", {}, h("a", { href: new URL("/chat", location.href).href }, "Ask the book")));
  readonly #picker = h("div", { class: "picker" });
  readonly #parts = h("div", { class: "parts" });
  // What somebody types into stays where it is while the rest is drawn anew.
  readonly #field = h("input", { type: "search", "aria-label": "Find a document", placeholder: "Find a document", on: { input: () => this.#draw() } });
  readonly #rows = h("tbody");
  readonly #more = h("p", { class: "quiet" });
  readonly #held = h("section", { class: "parts", hidden: true }, h("h2", {}, "Documents"), this.#field, table(["Document", "File", "Chunks", "Status", "Updated"], this.#rows), this.#more);
  #client = new Client({ server: "", key: tab.get(KEY), project: null });
  #project: Project | null = null;
  #documents: Document_[] = [];
  #seen = "";
  #timer = 0;

  constructor() {
    this.element.append(this.#top, this.#picker, this.#parts, this.#held);
  }

  async start(): Promise<void> {
    try {
      const { projects } = (await this.#client.get("/api/v1/projects")) as Schemas["ProjectList"];
      const first = projects.find(({ id }) => id === this.#project?.id) ?? projects.find(({ documents }) => documents > 0) ?? projects[0];
      this.#pick(projects, first);
      if (!first) return this.#say("There is nothing here yet. Take in your documents with ", h("code", {}, "citewell ingest PATH"), ".");
      this.#project = first;
      await this.#watch();
    } catch (error) {
      this.#failed(error);
    }
  }

  #pick(projects: Project[], first: Project | undefined): void {
    if (projects.length < 2) return this.#picker.replaceChildren();
    const options = projects.map((one) => h("option", { value: one.id, selected: one === first }, `${one.name} (${one.documents})`));
    const select = h("select", { on: { change: () => this.#choose(projects.find(({ id }) => id === select.value)!) } }, ...options);
    this.#picker.replaceChildren(h("label", {}, "Project ", select));
  }

  #choose(project: Project): void {
    this.#project = project;
    this.#seen = "";
    this.#watch().catch((error: unknown) => this.#failed(error));
  }

  /** Look now and then: an ingest may be running, and readers go on asking. */
  async #watch(): Promise<void> {
    await this.#look();
    this.#later(() => this.#watch(), document.hidden ? 5 * LOOK_AGAIN_MS : LOOK_AGAIN_MS);
  }

  #later(then: () => Promise<void>, wait: number): void {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => then().catch((error: unknown) => this.#failed(error)), wait);
  }

  async #look(): Promise<void> {
    const { id } = this.#project!;
    const at = `/api/v1/projects/${id}`;
    const [documents, ingests, gaps, feedback, evaluation] = await Promise.all([
      this.#client.get(`${at}/documents`) as Promise<Schemas["DocumentList"]>,
      this.#client.get(`${at}/ingests`) as Promise<Schemas["IngestList"]>,
      this.#client.get(`${at}/gaps`) as Promise<Schemas["GapList"]>,
      this.#client.get(`${at}/feedback`) as Promise<Schemas["FeedbackReport"]>,
      this.#client.get(`${at}/evaluation`) as Promise<Schemas["EvaluationReport"]>,
    ]);
    if (this.#project!.id === id) this.#show({ documents: documents.documents, ingests: ingests.ingests, gaps: gaps.gaps, feedback, evaluation });
  }

  #show(shown: Shown): void {
    const seen = JSON.stringify(shown);
    if (seen === this.#seen) return; // who reads or selects is not disturbed
    this.#seen = seen;
    const chunks = shown.documents.reduce((sum, one) => sum + one.chunkCount, 0);
    const failed = shown.documents.filter(({ status }) => status === "FAILED").length;
    this.#parts.replaceChildren(
      h("ul", { class: "counts" }, ...[
        count(shown.documents.length, "documents"), count(chunks, "chunks"), failed ? count(failed, "failed") : null,
        count(shown.gaps.length, shown.gaps.length === MOST_GAPS ? "or more gaps" : shown.gaps.length === 1 ? "gap" : "gaps"),
        count(shown.feedback.up, "helped"), count(shown.feedback.down, "did not help"),
      ]),
      part("Ingests", shown.ingests.slice(0, 5).map(ingest), "No ingest has run yet."),
      part("Not covered: what readers asked in vain", gaps(shown.gaps), "No reader has asked in vain yet."),
      part("Votes", votes(shown.feedback.last), "No reader has voted yet."),
      part("Evaluation", evaluated(shown.evaluation), "No evaluation yet: run citewell eval questions.jsonl."),
      shown.documents.length ? "" : part("Documents", [], "Nothing has been taken in yet."),
    );
    this.#documents = shown.documents;
    this.#held.hidden = !shown.documents.length;
    this.#draw();
  }

  #draw(): void {
    const sought = this.#field.value.toLowerCase();
    const found = this.#documents.filter(({ filename, title, status }) => `${filename} ${title ?? ""} ${status}`.toLowerCase().includes(sought));
    this.#rows.replaceChildren(...found.slice(0, AT_ONCE).map(row));
    this.#more.textContent = found.length > AT_ONCE ? `The first ${AT_ONCE} of ${found.length}; narrow them down above.` : "";
  }

  #failed(error: unknown): void {
    const failure = error instanceof Problem ? error.failure : null;
    if (failure?.kind === "key") return this.#askForKey(failure.message);
    this.#say(failure?.kind === "offline" || !failure ? "The server cannot be reached. This page looks again every few seconds." : failure.message);
    this.#seen = "";
    this.#later(() => this.start(), 2 * LOOK_AGAIN_MS);
  }

  #askForKey(why: string): void {
    const field = h("input", { type: "password", autocomplete: "off", required: true, "aria-label": "Admin key", placeholder: "cw_…" });
    const use = (event: Event): void => {
      event.preventDefault();
      tab.set(KEY, field.value.trim());
      this.#client = new Client({ server: "", key: field.value.trim(), project: null });
      void this.start();
    };
    this.#held.hidden = true;
    this.#parts.replaceChildren(
      h("p", { role: "alert", dir: "auto" }, "This page takes an admin key. ", h("span", { class: "quiet" }, tab.get(KEY) ? why : "Make one with citewell keys create NAME --scope admin.")),
      h("form", { class: "key", on: { submit: use } }, field, h("button", { type: "submit" }, "Use this key")),
    );
    field.focus();
  }

  #say(...words: Child[]): void {
    this.#held.hidden = true;
    this.#parts.replaceChildren(h("p", { role: "alert" }, ...words));
  }
}

function count(number: number, word: string): HTMLElement {
  return h("li", {}, h("strong", {}, String(number)), ` ${word}`);
}

function part(title: string, children: Child[], none: string): HTMLElement {
  return h("section", {}, h("h2", {}, title), ...(children.length ? children : [h("p", { class: "quiet" }, none)]));
}

function table(heads: string[], body: HTMLElement): HTMLElement {
  return h("div", { class: "table", tabindex: "0", role: "region", "aria-label": heads.join(", ") },
    h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), body));
}

function row(one: Document_): HTMLElement {
  const title = one.title || one.filename;
  return h("tr", {},
    h("td", {}, one.url ? h("a", { href: one.url, dir: "auto" }, title) : h("bdi", {}, title), one.error && h("p", { class: "bad", dir: "auto" }, one.error)),
    h("td", {}, h("bdi", { class: "file" }, one.filename)), h("td", {}, String(one.chunkCount)),
    h("td", { class: `status ${one.status.toLowerCase()}` }, one.status.toLowerCase()), h("td", {}, when(one.updatedAt)));
}

function ingest(one: Ingest): HTMLElement {
  const running = one.state === "running";
  const said = running ? `${one.stage || "running"}${one.total ? `, ${one.done} of ${one.total}` : ""}` : `${one.filesProcessed} files, ${one.chunksCreated} chunks`;
  const bar = running && one.total ? h("progress", { max: one.total, value: one.done, "aria-label": "Progress of the ingest" }) : null;
  const errors = one.errors.length ? h("ul", { class: "bad" }, ...one.errors.map((error) => h("li", { dir: "auto" }, error))) : null;
  return h("div", { class: `ingest ${one.state}` }, h("p", {}, h("strong", {}, one.state), ` ${said} `, h("span", { class: "quiet" }, when(one.startedAt))), bar, errors);
}

function gaps(rows: Schemas["Gap"][]): Child[] {
  if (!rows.length) return [];
  const body = h("tbody", {}, ...rows.map((one) => h("tr", {}, h("td", { dir: "auto" }, one.question), h("td", {}, String(one.times)), h("td", {}, when(one.lastAskedAt)))));
  return [table(["Question", "Times", "Last asked"], body)];
}

function votes(last: Schemas["FeedbackReport"]["last"]): Child[] {
  if (!last.length) return [];
  const body = h("tbody", {}, ...last.map((one) => h("tr", {}, h("td", {}, one.vote === "up" ? "helped" : "did not help"), h("td", { dir: "auto" }, one.question), h("td", { dir: "auto" }, one.answer), h("td", {}, when(one.at)))));
  return [table(["Vote", "Question", "Answer", "When"], body)];
}

/** Scores as `citewell eval --json` gives them. */
function evaluated(one: Schemas["EvaluationReport"]): Child[] {
  if (!one.at) return [];
  const rows = Object.entries(one.scores).map(([name, score]) => {
    const { value, low, high } = score;
    return h("tr", {}, h("td", {}, name), h("td", {}, number(value)), h("td", {}, value == null ? "" : `${number(low)} – ${number(high)}`));
  });
  return [h("p", { class: "quiet" }, `${one.questions} questions, ${when(one.at)}`), table(["Score", "Value", "95 % interval"], h("tbody", {}, ...rows))];
}

function number(value: number | null): string {
  return value !== null ? value.toLocaleString(undefined, { maximumFractionDigits: 3 }) : "–";
}

function when(moment: string): string {
  return new Date(moment).toLocaleString();
}

dress(document, style);
const library = new Library();
document.body.append(library.element);
void library.start();
