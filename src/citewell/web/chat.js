// A plain page: ask, show the stream, list the sources. Text only ever becomes text nodes, so nothing
// that a book or an answer says can run here.

const conversation = document.querySelector("#conversation");
const form = document.querySelector("#ask");
const field = document.querySelector("#question");
const button = form.querySelector("button");
// A server that asks for a key is opened as /chat#key=cw_…; what follows the # never leaves the browser on its own.
const given = new URLSearchParams(location.hash.slice(1)).get("key");
if (given) {
  sessionStorage.setItem("citewell-key", given);
  history.replaceState(null, "", location.pathname);
}
const key = sessionStorage.getItem("citewell-key");
let turns = 0;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const question = field.value.trim();
  if (!question || button.disabled) return;
  field.value = "";
  ask(question);
});

field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});

async function ask(question) {
  const turn = ++turns;
  conversation.append(element("div", "question", question));
  const bubble = element("div", "answer waiting");
  conversation.append(bubble);
  bubble.scrollIntoView({ block: "nearest" });
  button.disabled = true;
  let text = "";
  try {
    const last = await stream(question, (content) => {
      text += content;
      bubble.className = "answer";
      bubble.replaceChildren(...rendered(text, turn));
    });
    if (last.error) throw new Error(last.error);
    bubble.classList.toggle("declined", last.confidence === 0);
    if (last.citations.length) {
      bubble.append(sources(last.citations, turn));
      bubble.append(element("p", "certainty", `Confidence ${Math.round(last.confidence * 100)} %`));
    }
    if (last.nearest?.length) bubble.append(topics(last.nearest));
    for (const doubt of doubts(last.support ?? [])) bubble.append(doubt);
    if (last.notice) bubble.append(element("p", "certainty", last.notice));
  } catch (error) {
    bubble.className = "answer failed";
    bubble.append(element("p", "", error instanceof TypeError ? "The server cannot be reached. Is it still running?" : error.message));
  } finally {
    button.disabled = false;
    field.focus();
    bubble.scrollIntoView({ block: "nearest" });
  }
}

/** Calls `onContent` with each piece and resolves to the last event. */
async function stream(question, onContent) {
  const response = await fetch("/api/ask/stream", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) },
    body: JSON.stringify({ question }),
  });
  if (response.status === 401) throw new Error("This server asks for a key: open the page as /chat#key=… with yours.");
  if (!response.ok) throw new Error((await response.json()).message);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("The answer was cut short. Please ask again.");
    buffer += value;
    const events = buffer.split("\n\n");
    buffer = events.pop();
    for (const event of events) {
      if (!event.startsWith("data: ")) continue;
      const data = JSON.parse(event.slice(6));
      if (data.done) return data;
      onContent(data.content);
    }
  }
}

/** Paragraphs, code and tables, and each [n] as a link to its source. */
function rendered(text, turn) {
  return blocks(text).map(({ kind, lines }) => {
    if (kind === "table") return table(lines);
    const node = element(kind === "prose" ? "p" : "pre");
    const shown = lines.join("\n");
    if (kind !== "prose") node.append(shown);
    else for (const part of shown.split(/(\[\d+\]|`[^`]+`)/)) node.append(inline(part, turn));
    return node;
  });
}

function inline(part, turn) {
  const mark = /^\[(\d+)\]$/.exec(part);
  if (mark) {
    const link = element("a", "mark", part);
    link.href = `#source-${turn}-${mark[1]}`;
    return link;
  }
  if (/^`[^`]+`$/.test(part)) return element("code", "", part.slice(1, -1));
  return document.createTextNode(part.replace(/(\*\*|(?<![\w*])\*)(?=\S)(.+?)(?<=\S)\1/g, "$2"));
}

function table(lines) {
  const rows = lines
    .filter((line) => !/^\s*\|?[\s:|-]+\|?\s*$/.test(line))
    .map((line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim()));
  const frame = element("div", "table");
  const node = frame.appendChild(element("table"));
  rows.forEach((cells, number) => {
    const row = node.appendChild(element("tr"));
    for (const cell of cells) row.append(element(number === 0 && rows.length > 1 ? "th" : "td", "", cell));
  });
  return frame;
}

/** Cut the text at blank lines, but never inside a fence; fence lines themselves are not shown. */
function blocks(text) {
  const found = [];
  let current = null;
  let fence = "";
  for (const line of text.split("\n")) {
    const tick = /^\s*(`{3,}|~{3,})/.exec(line)?.[1] ?? "";
    if (fence) {
      if (tick.startsWith(fence)) fence = current = null;
      else current.lines.push(line);
    } else if (tick) {
      fence = tick;
      found.push((current = { kind: "code", lines: [] }));
    } else if (line.trim() === "$$") {
      if (current?.kind === "formula") current = null;
      else found.push((current = { kind: "formula", lines: [] }));
    } else if (current?.kind === "formula") {
      current.lines.push(line);
    } else if (!line.trim()) {
      current = null;
    } else {
      const kind = /^\s*\|/.test(line) ? "table" : "prose";
      if (current?.kind !== kind) found.push((current = { kind, lines: [] }));
      current.lines.push(line);
    }
  }
  return found;
}

function sources(citations, turn) {
  const list = element("ol", "sources");
  citations.forEach((citation, position) => {
    const item = element("li");
    item.id = `source-${turn}-${position + 1}`;
    item.append(pageLink(citation.chapter_title, citation.source_url), " ", element("span", "file", citation.source_file));
    item.append(element("q", "", citation.excerpt));
    list.append(item);
  });
  return list;
}

/** The sentences that nothing bears out, each with why. */
function doubts(support) {
  const why = { unsupported: "Its source does not seem to say", uncited: "No source was named for" };
  return support.filter(({ verdict }) => verdict in why).map(({ sentence, verdict }) => {
    const line = element("p", "doubt", `${why[verdict]}: `);
    line.append(element("q", "", sentence));
    return line;
  });
}

/** Topics the book covers, as links where they have a page. */
function topics(nearest) {
  const list = element("ul", "sources topics");
  for (const { title, url, source_file } of nearest) {
    const item = list.appendChild(element("li"));
    item.append(pageLink(title, url), " ", element("span", "file", source_file));
  }
  return list;
}

/** The title, as a link where there is a live page. */
function pageLink(title, url) {
  const page = /^https?:\/\//.test(url ?? "");
  const name = element(page ? "a" : "strong", "", title);
  return page ? Object.assign(name, { href: url, target: "_blank", rel: "noopener noreferrer" }) : name;
}

function element(name, className = "", text = "") {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text) node.textContent = text;
  return node;
}
