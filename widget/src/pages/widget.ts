/**
 * The chat in the corner of any page, added by one script tag. It lives in a shadow tree, so that the styles of the page
 * and of the widget do not affect each other. Attributes of the tag: data-server, data-key, data-project, data-title,
 * data-welcome, data-questions, data-lang, data-theme (light or dark), data-selection="off", data-open.
 */

import { Client } from "../api/client";
import { Chat } from "../chat/chat";
import chatStyle from "../chat/chat.css?inline";
import { SelectionButton } from "../chat/selection-button";
import { h, iconButton } from "../dom/elements";
import { CHAT } from "../dom/icons";
import { tabStorage } from "../dom/storage";
import { adoptStyles } from "../dom/stylesheet";
import { loadTranslations, pickLanguage, textDirection, type Translate } from "../i18n/translations";
import formulaStyle from "../markdown/formula.css?inline";
import widgetStyle from "./widget.css?inline";

/** `window.Citewell`: how the scripts of a page control the widget. */
export interface WidgetApi {
  open(): void;
  close(): void;
  /** Open the widget and ask; with a selection, answer from that text only. */
  ask(question: string, selection?: string): void;
  /** Remove the widget from the page. */
  destroy(): void;
}

declare global {
  interface Window {
    Citewell?: WidgetApi;
  }
}

const OPEN = "citewell:open"; // set while the widget is open, so that it is open on the next page too
const ELEMENT_NAME = "citewell-widget";

async function start(tag: HTMLScriptElement | null): Promise<void> {
  if (document.querySelector(ELEMENT_NAME)) return; // the page has a widget already
  const { server, lang, theme } = tag?.dataset ?? {};
  const serverUrl = (server ?? (tag?.src ? new URL(tag.src).origin : "")).replace(/\/$/, "");
  const language = pickLanguage([lang ?? "", document.documentElement.lang, ...navigator.languages]);
  const host = h(ELEMENT_NAME as "div", { lang: language, dir: textDirection(language), ...(theme && { "data-theme": theme }) });
  const root = host.attachShadow({ mode: "open" });
  addStyles(host, root);
  const t = await loadTranslations(language, serverUrl);
  window.Citewell = createWidget(host, root, t, serverUrl, tag?.dataset ?? {});
  document.dispatchEvent(new CustomEvent("citewell:ready"));
}

function addStyles(host: HTMLElement, root: ShadowRoot): void {
  const styles = [chatStyle, formulaStyle, widgetStyle];
  adoptStyles(root, ...styles);
  // Beside the body, not in it: a transform of the body or a swap of its content does not affect the widget.
  document.documentElement.append(host);
  // The page may change the size of a rem. Here it is the reader's medium font size, so write it out in pixels.
  const rem = parseFloat(getComputedStyle(host).fontSize);
  root.adoptedStyleSheets = [];
  adoptStyles(root, ...styles.map((style) => style.replace(/([\d.]+)rem\b/g, (_, size: string) => `${Number(size) * rem}px`)));
}

function createWidget(host: HTMLElement, root: ShadowRoot, t: Translate, server: string, options: DOMStringMap): WidgetApi {
  const heading = options.title || t("title");
  const client = new Client({ server, key: options.key ?? null, project: options.project ?? null });
  const chat = new Chat({
    client,
    t,
    heading: options.title || undefined,
    welcome: options.welcome || undefined,
    questions: options.questions?.split(/[|\n]/).map((question) => question.trim()).filter(Boolean),
    onHeading: (label) => setLabel(label),
    onClose: () => close(),
  });
  const frame = h("div", { class: "frame", role: "dialog", "aria-label": heading, hidden: true }, chat.element);
  const bubble = iconButton("bubble-button", CHAT, heading, () => (frame.hidden ? open() : close()));
  const setLabel = (label: string): void => {
    for (const element of [frame, bubble]) element.setAttribute("aria-label", label);
    bubble.title = label;
  };
  bubble.setAttribute("aria-expanded", "false");
  root.append(frame, bubble);
  // Keys typed in the widget must not trigger shortcuts of the page, which cannot see that they go into a field.
  for (const kind of ["keydown", "keypress", "keyup"]) root.addEventListener(kind, (event) => event.stopPropagation());
  bubble.addEventListener("keydown", (event) => event.key === "Escape" && !frame.hidden && close());
  let isStarted = false;

  const openWithoutFocus = (): void => {
    frame.hidden = false;
    bubble.setAttribute("aria-expanded", "true");
    tabStorage.set(OPEN, "yes");
    if (!isStarted) void chat.start();
    isStarted = true;
  };
  const open = (): void => {
    openWithoutFocus();
    chat.focus();
  };
  const close = (): void => {
    const hadFocus = root.activeElement !== null;
    chat.closeSource();
    frame.hidden = true;
    bubble.setAttribute("aria-expanded", "false");
    tabStorage.set(OPEN, "");
    if (hadFocus) bubble.focus();
  };
  const askAbout = (text: string): void => {
    open();
    chat.select(text);
  };
  const selectionButton = options.selection === "off" ? null : new SelectionButton(document.documentElement, t("about"), askAbout);
  if (selectionButton) root.append(selectionButton.element);
  if (options.open !== undefined || tabStorage.get(OPEN)) openWithoutFocus(); // the reader goes on reading the page

  return {
    open,
    close,
    ask: (question, selection) => {
      open();
      chat.ask(String(question), selection);
    },
    destroy: () => {
      selectionButton?.destroy();
      chat.destroy();
      host.remove();
      delete window.Citewell;
    },
  };
}

// In a module or a bundle, `currentScript` is null.
const tag = (document.currentScript ?? document.querySelector('script[src$="/widget.js"]')) as HTMLScriptElement | null;
if (document.body) void start(tag);
else document.addEventListener("DOMContentLoaded", () => void start(tag), { once: true });
