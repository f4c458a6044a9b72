/**
 * The chat in a corner of any page, by one script tag. It lives in a shadow tree: the page cannot break it, nor it the
 * page. Attributes of the tag: data-server, data-key, data-project, data-title, data-lang, data-theme (light or dark),
 * data-selection="off", data-open.
 */

import { Chat } from "./chat";
import { Client } from "./client";
import { BUBBLE } from "./icons";
import { tab } from "./memory";
import { h, icon } from "./safe";
import { SelectionButton } from "./selection";
import formulas from "./formula.css?inline";
import { dress } from "./style";
import style from "./style.css?inline";
import around from "./widget.css?inline";
import { chosen, direction, wordsIn } from "./words";

export interface Api {
  open(): void;
  close(): void;
  /** Open, and ask; with a selection, about that alone. */
  ask(question: string, selection?: string): void;
  /** Take everything away again. */
  destroy(): void;
}

declare global {
  interface Window {
    Citewell?: Api;
  }
}

const OPEN = "citewell:open"; // whether the reader had it open on the page before
const NAME = "citewell-widget";

async function start(tag: HTMLScriptElement | null): Promise<void> {
  if (document.querySelector(NAME)) return; // one is enough
  const { server, key, project, title, lang, theme, selection, open } = tag?.dataset ?? {};
  const home = (server ?? (tag?.src ? new URL(tag.src).origin : "")).replace(/\/$/, "");
  const language = chosen([lang ?? "", document.documentElement.lang, ...navigator.languages]);
  const host = h(NAME as "div", { lang: language, dir: direction(language), ...(theme && { "data-theme": theme }) });
  const root = host.attachShadow({ mode: "open" });
  dress(root, style, formulas, around);
  // Beside the body: whatever the page does to that (a transform, a swap for another page) does not concern the widget.
  document.documentElement.append(host);
  // A page may size its root as it likes: here a rem is what the reader's browser takes for medium.
  const rem = parseFloat(getComputedStyle(host).fontSize);
  root.adoptedStyleSheets = [];
  dress(root, ...[style, formulas, around].map((sheet) => sheet.replace(/([\d.]+)rem\b/g, (_, size: string) => `${Number(size) * rem}px`)));

  const say = await wordsIn(language, home);
  const name = title ?? say("open");
  const client = new Client({ server: home, key: key ?? null, project: project ?? null });
  const chat = new Chat({ client, say, title: name, close: () => hide() });
  const frame = h("div", { class: "frame", role: "dialog", "aria-label": name, hidden: true }, chat.element);
  const bubble = h(
    "button",
    {
      type: "button",
      class: "bubble-button",
      "aria-label": name,
      title: name,
      "aria-expanded": "false",
      on: { click: () => (frame.hidden ? show() : hide()) },
    },
    icon(BUBBLE),
  );
  root.append(frame, bubble);
  // What is typed here is no shortcut of the page, which cannot see that it is typed into a field.
  for (const kind of ["keydown", "keypress", "keyup"]) root.addEventListener(kind, (event) => event.stopPropagation());
  bubble.addEventListener("keydown", (event) => event.key === "Escape" && !frame.hidden && hide());
  let begun = false;

  function show(): void {
    unfold();
    chat.focus();
  }

  function unfold(): void {
    frame.hidden = false;
    bubble.setAttribute("aria-expanded", "true");
    tab.set(OPEN, "yes");
    if (!begun) void chat.start();
    begun = true;
  }

  function hide(): void {
    const hadFocus = root.activeElement !== null;
    chat.closeSource();
    frame.hidden = true;
    bubble.setAttribute("aria-expanded", "false");
    tab.set(OPEN, "");
    if (hadFocus) bubble.focus();
  }

  const about =
    selection === "off"
      ? null
      : new SelectionButton(document.documentElement, say("about"), (text) => {
          show();
          chat.select(text);
        });
  if (about) root.append(about.element);
  if (open !== undefined || tab.get(OPEN)) unfold(); // whoever reads the page goes on reading

  window.Citewell = {
    open: show,
    close: hide,
    ask: (question, text) => {
      show();
      void chat.ask(question, text ? { text } : undefined);
    },
    destroy: () => {
      about?.end();
      chat.end();
      host.remove();
      delete window.Citewell;
    },
  };
  document.dispatchEvent(new CustomEvent("citewell:ready"));
}

// A module or a bundler's copy is no `currentScript`.
const tag = (document.currentScript ?? document.querySelector('script[src$="/widget.js"]')) as HTMLScriptElement | null;
if (document.body) void start(tag);
else document.addEventListener("DOMContentLoaded", () => void start(tag), { once: true });
