/** `/library`: what an author wants to know. What is held, how ingests go, what readers missed, how answers score. */

import type { components } from "./api";
import { Client, Problem } from "./client";
import formulas from "./formula.css?inline";
import style from "./library.css?inline";
import { render } from "./markdown";
import { tab } from "./memory";
import { add, type Child, h } from "./safe";
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

/** A part of the page. It is drawn again only when it says something else: who reads or selects is not disturbed. */
class Part {
  readonly element: HTMLElement;
  readonly #body = h("div");
  #seen = "";

  constructor(
    title: string,
    private readonly none: string,
    ...before: Child[]
  ) {
    this.element = h("section", {}, h("h2", {}, title), ...before, this.#body);
  }

  show(what: unknown, draw: () => Child[]): void {
    const seen = JSON.stringify(what);
    if (seen === this.#seen) return;
    this.#seen = seen;
    this.#body.replaceChildren();
    const children = draw();
    add(this.#body, ...(children.length ? children : [h("p", { class: "quiet" }, this.none)]));
  }
}

class Library {
  readonly element = h("main");
  readonly #picker = h("select", { on: { change: () => this.#choose(this.#picker.value) } });
  readonly #pick = h("label", { class: "picker", hidden: true }, "Project ", this.#picker);
  readonly #notice = h("div", { role: "alert" });
  readonly #counts = h("ul", { class: "counts" });
  readonly #ingests = new Part("Ingests", "No ingest has run yet.");
  readonly #gaps = new Part("Not covered: what readers asked in vain", "No reader has asked in vain yet.");
  readonly #votes = new Part("Votes", "No reader has voted yet.");
  readonly #evaluation = new Part("Evaluation", "No evaluation yet: run `citewell eval questions.jsonl`.");
  readonly #field = h("input", {
    type: "search",
    "aria-label": "Find a document",
    placeholder: "Find a document",
    on: { input: () => this.#list() },
  });
  readonly #documents = new Part("Documents", "Nothing has been taken in yet: run `citewell ingest PATH`.", this.#field);
  readonly #parts = h(
    "div",
    { class: "parts", hidden: true },
    this.#counts,
    ...[this.#ingests, this.#gaps, this.#votes, this.#evaluation, this.#documents].map((one) => one.element),
  );
  #client = new Client({ server: "", key: tab.get(KEY), project: null });
  #chosen: string | null = null;
  #held: Document_[] = [];
  #round = 0;
  #next = 0;

  constructor() {
    const ask = h("a", { href: new URL("/chat", location.href).href }, "Ask the book");
    this.element.append(h("header", {}, h("h1", {}, "Library"), h("nav", {}, ask)), this.#pick, this.#notice, this.#parts);
  }

  /** Look now, and then again and again: an ingest may be running, and readers go on asking. */
  async watch(): Promise<void> {
    clearTimeout(this.#next);
    const round = ++this.#round;
    let goOn = true;
    try {
      const shown = await this.#look();
      if (round === this.#round) this.#show(shown);
    } catch (error) {
      if (round === this.#round) goOn = this.#failed(error);
    }
    const wait = document.hidden ? 5 * LOOK_AGAIN_MS : LOOK_AGAIN_MS;
    if (goOn && round === this.#round) this.#next = window.setTimeout(() => void this.watch(), wait);
  }

  async #look(): Promise<Shown> {
    const { projects } = (await this.#client.get("/api/v1/projects")) as Schemas["ProjectList"];
    const project = projects.find(({ id }) => id === this.#chosen) ?? projects.find(({ documents }) => documents > 0) ?? projects[0]!;
    if (project.documents) this.#chosen = project.id;
    this.#offer(projects, project);
    const at = `/api/v1/projects/${project.id}`;
    const [documents, ingests, gaps, feedback, evaluation] = await Promise.all([
      this.#client.get(`${at}/documents`) as Promise<Schemas["DocumentList"]>,
      this.#client.get(`${at}/ingests`) as Promise<Schemas["IngestList"]>,
      this.#client.get(`${at}/gaps`) as Promise<Schemas["GapList"]>,
      this.#client.get(`${at}/feedback`) as Promise<Schemas["FeedbackReport"]>,
      this.#client.get(`${at}/evaluation`) as Promise<Schemas["EvaluationReport"]>,
    ]);
    return { documents: documents.documents, ingests: ingests.ingests, gaps: gaps.gaps, feedback, evaluation };
  }

  #offer(projects: Project[], chosen: Project): void {
    const names = projects.map(({ name, documents }) => `${name} (${documents})`);
    if (names.join("\n") !== [...this.#picker.options].map(({ text }) => text).join("\n")) {
      this.#picker.replaceChildren(...projects.map(({ id }, number) => h("option", { value: id }, names[number])));
    }
    this.#picker.value = chosen.id;
    this.#pick.hidden = projects.length < 2;
  }

  #choose(project: string): void {
    this.#chosen = project;
    void this.watch();
  }

  #show(shown: Shown): void {
    const { documents, ingests, gaps, feedback, evaluation } = shown;
    const chunks = documents.reduce((sum, one) => sum + one.chunkCount, 0);
    const failed = documents.filter(({ status }) => status === "FAILED").length;
    this.#notice.replaceChildren();
    this.#parts.hidden = false;
    this.#counts.replaceChildren(
      count(documents.length, "document", "documents"),
      count(chunks, "chunk", "chunks"),
      ...(failed ? [count(failed, "failed")] : []),
      count(gaps.length, "gap", gaps.length === MOST_GAPS ? "gaps or more" : "gaps"),
      count(feedback.up, "helped"),
      count(feedback.down, "did not help"),
    );
    this.#ingests.show(ingests, () => ingests.slice(0, 5).map(ingest));
    this.#gaps.show(gaps, () => missed(gaps));
    this.#votes.show(feedback, () => votes(feedback.last));
    this.#evaluation.show(evaluation, () => evaluated(evaluation));
    this.#held = documents;
    this.#list();
  }

  /** The documents that are sought. */
  #list(): void {
    const sought = this.#field.value.trim().toLowerCase();
    const found = this.#held.filter(({ filename, title, status }) => `${filename} ${title ?? ""} ${status}`.toLowerCase().includes(sought));
    this.#field.hidden = !this.#held.length;
    this.#documents.show([found, this.#held.length], () => {
      if (!this.#held.length) return [];
      if (!found.length) return [h("p", { class: "quiet" }, "No document is called so.")];
      const more = found.length > AT_ONCE && h("p", { class: "quiet" }, `The first ${AT_ONCE} of ${found.length}; narrow them down above.`);
      return [
        table(
          ["Document", "File", "Chunks", "Status", "Updated"],
          h("tbody", {}, ...found.slice(0, AT_ONCE).map((one) => row(one, () => this.#chunks(one)))),
        ),
        more,
      ];
    });
  }

  /** What the index has of a document, piece by piece. */
  async #chunks(one: Document_): Promise<Child[]> {
    const held = (await this.#client.get(`/api/v1/documents/${one.documentId}?text=true`)) as Schemas["DocumentDetail"];
    const letters = Array.from(held.text ?? ""); // places are counted in characters, not in halves of them
    return held.chunks.map((chunk) =>
      h(
        "details",
        {},
        h(
          "summary",
          { dir: "auto" },
          `${chunk.chunkIndex + 1}. ${chunk.section || title(one)} `,
          h("span", { class: "quiet" }, chunk.page ? `page ${chunk.page}` : `lines ${chunk.line}–${chunk.lastLine}`),
        ),
        render(letters.slice(chunk.start, chunk.end).join("")),
      ),
    );
  }

  /** Say what is wrong; whether it is worth looking again. What was seen before stays, but for who may not see it. */
  #failed(error: unknown): boolean {
    const failure = error instanceof Problem ? error.failure : null;
    if (failure?.kind === "key") {
      this.#askForKey(failure.message);
      return false;
    }
    const known = failure && failure.kind !== "offline" ? failure.message : "The server cannot be reached.";
    const words = `${known} This page looks again every few seconds.`;
    if (this.#notice.textContent !== words) this.#notice.replaceChildren(h("p", { class: "bad", dir: "auto" }, words));
    return true;
  }

  #askForKey(why: string): void {
    const field = h("input", { type: "password", autocomplete: "off", required: true, "aria-label": "Admin key", placeholder: "cw_…" });
    const use = (event: Event): void => {
      event.preventDefault();
      tab.set(KEY, field.value.trim());
      this.#client = new Client({ server: "", key: field.value.trim(), project: null });
      void this.watch();
    };
    this.#parts.hidden = this.#pick.hidden = true;
    this.#notice.replaceChildren(
      h("p", { dir: "auto" }, "This page takes an admin key. ", h("span", { class: "quiet" }, why)),
      h("form", { class: "key", on: { submit: use } }, field, h("button", { type: "submit" }, "Use this key")),
    );
    field.focus();
  }
}

function count(number: number, one: string, many = one): HTMLElement {
  return h("li", {}, h("strong", {}, String(number)), ` ${number === 1 ? one : many}`);
}

function table(heads: string[], body: HTMLElement): HTMLElement {
  return h(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": heads.join(", ") },
    h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), body),
  );
}

function title(one: Document_): string {
  return one.title || one.filename;
}

function row(one: Document_, chunks: () => Promise<Child[]>): HTMLElement {
  const inside = h("td", { colspan: "5" });
  const below = h("tr", { class: "chunks" }, inside);
  const opener = h(
    "button",
    { type: "button", "aria-expanded": "false", title: "Show the chunks", on: { click: () => void toggle() } },
    String(one.chunkCount),
  );
  const toggle = async (): Promise<void> => {
    const open = !below.isConnected;
    opener.setAttribute("aria-expanded", String(open));
    if (!open) return below.remove();
    made.after(below);
    const found = await chunks().catch((error: unknown) => [
      h("p", { class: "bad" }, error instanceof Problem && error.failure.message ? error.failure.message : "The server cannot be reached."),
    ]);
    inside.replaceChildren();
    add(inside, ...found);
  };
  const made = h(
    "tr",
    {},
    h(
      "td",
      {},
      one.url ? h("a", { href: one.url, dir: "auto" }, title(one)) : h("bdi", {}, title(one)),
      one.error && h("p", { class: "bad", dir: "auto" }, one.error),
    ),
    h("td", {}, h("bdi", { class: "file" }, one.filename)),
    h("td", {}, one.chunkCount ? opener : "0"),
    h("td", { class: `status ${one.status.toLowerCase()}` }, one.status.toLowerCase()),
    h("td", {}, when(one.updatedAt)),
  );
  return made;
}

function ingest(one: Ingest): HTMLElement {
  const running = one.state === "running";
  const said = running
    ? `${one.stage || "running"}${one.total ? `, ${one.done} of ${one.total}` : ""}`
    : `${one.filesProcessed} files, ${one.chunksCreated} chunks`;
  const bar = running && one.total ? h("progress", { max: one.total, value: one.done, "aria-label": "Progress of the ingest" }) : null;
  const errors = one.errors.length ? h("ul", { class: "bad" }, ...one.errors.map((error) => h("li", { dir: "auto" }, error))) : null;
  return h(
    "div",
    { class: `ingest ${one.state}` },
    h("p", {}, h("strong", {}, one.state), ` ${said} `, h("span", { class: "quiet" }, when(one.startedAt))),
    bar,
    errors,
  );
}

function missed(rows: Schemas["Gap"][]): Child[] {
  if (!rows.length) return [];
  const body = h(
    "tbody",
    {},
    ...rows.map((one) =>
      h("tr", {}, h("td", { dir: "auto" }, one.question), h("td", {}, String(one.times)), h("td", {}, when(one.lastAskedAt))),
    ),
  );
  return [table(["Question", "Times", "Last asked"], body)];
}

function votes(last: Schemas["FeedbackReport"]["last"]): Child[] {
  if (!last.length) return [];
  const body = h(
    "tbody",
    {},
    ...last.map((one) =>
      h(
        "tr",
        {},
        h("td", {}, one.vote === "up" ? "helped" : "did not help"),
        h("td", { dir: "auto" }, one.question),
        h("td", { dir: "auto" }, one.answer),
        h("td", {}, when(one.at)),
      ),
    ),
  );
  return [table(["Vote", "Question", "Answer", "When"], body)];
}

/** Scores as `citewell eval --json` gives them. */
function evaluated(one: Schemas["EvaluationReport"]): Child[] {
  if (!one.at) return [];
  const rows = Object.entries(one.scores).map(([name, score]) => {
    const { value, low, high } = score;
    return h("tr", {}, h("td", {}, name), h("td", {}, number(value)), h("td", {}, value == null ? "" : `${number(low)} – ${number(high)}`));
  });
  return [
    h("p", { class: "quiet" }, `${one.questions} questions, ${when(one.at)}`),
    table(["Score", "Value", "95 % interval"], h("tbody", {}, ...rows)),
  ];
}

function number(value: number | null): string {
  return value !== null ? value.toLocaleString(undefined, { maximumFractionDigits: 3 }) : "–";
}

function when(moment: string): string {
  return new Date(moment).toLocaleString();
}

dress(document, style, formulas);
const library = new Library();
document.body.append(library.element);
void library.watch();
