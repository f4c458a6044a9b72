/** The chat as a page of its own, at `/chat`. */

import { Client } from "../api/client";
import { Chat } from "../chat/chat";
import chatStyle from "../chat/chat.css?inline";
import { SelectionButton } from "../chat/selection-button";
import { tabStorage } from "../dom/storage";
import { adoptStyles } from "../dom/stylesheet";
import { loadTranslations, pickLanguage, textDirection, type Translate } from "../i18n/translations";
import formulaStyle from "../markdown/formula.css?inline";

const KEY = "citewell-key";
const PROJECT = "citewell-project";
const DEFAULT_PROJECT = "citewell-first-project";

async function openPage(): Promise<void> {
  const language = pickLanguage([new URLSearchParams(location.search).get("lang") ?? "", ...navigator.languages]);
  const t = await loadTranslations(language, "");
  document.documentElement.lang = language;
  document.documentElement.dir = textDirection(language);
  document.title = metaText("application-name") ?? t("title");
  showChat(t);
}

/** What the operator has set, which the server writes into the page. */
function metaText(name: string): string | undefined {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content;
}

function showChat(t: Translate): void {
  const client = new Client({ server: "", key: tabStorage.get(KEY), project: tabStorage.get(PROJECT) || null });
  const chat = new Chat({
    client,
    t,
    title: metaText("application-name"),
    welcome: metaText("description"),
    hasLogo: !!document.querySelector('link[rel="icon"][href="/logo"]'),
    onKey: (key) => restartWith(KEY, key),
    onProjectKnown: (id) => tabStorage.get(PROJECT) || tabStorage.set(DEFAULT_PROJECT, id),
    // Conversations with the default project are stored without a project id.
    onPickProject: (id) => restartWith(PROJECT, id === tabStorage.get(DEFAULT_PROJECT) ? "" : id),
  });
  const selectionButton = new SelectionButton(chat.element, t("about"), (text) => chat.select(text));
  const restartWith = (name: string, value: string): void => {
    tabStorage.set(name, value);
    selectionButton.destroy();
    chat.destroy();
    showChat(t);
  };
  document.body.append(chat.element, selectionButton.element);
  chat.focus();
  void chat.start();
}

// A link such as /chat#key=cw_… carries the API key. Browsers do not send what follows the # to the server.
const key = new URLSearchParams(location.hash.slice(1)).get("key");
if (key) {
  tabStorage.set(KEY, key);
  history.replaceState(null, "", location.pathname + location.search);
}
adoptStyles(document, chatStyle, formulaStyle);
void openPage();
