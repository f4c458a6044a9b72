/** The chat as a page of its own, at `/chat`. */

import { Chat } from "./chat";
import { Client } from "./client";
import { tab } from "./memory";
import formulas from "./formula.css?inline";
import style from "./style.css?inline";
import { dress } from "./style";
import { SelectionButton } from "./selection";
import { chosen, direction, wordsIn } from "./words";

const KEY = "citewell-key";
const PROJECT = "citewell-project";
const FIRST = "citewell-first-project";

async function open(): Promise<void> {
  const language = chosen([new URLSearchParams(location.search).get("lang") ?? "", ...navigator.languages]);
  const say = await wordsIn(language, "");
  document.documentElement.lang = language;
  document.documentElement.dir = direction(language);
  document.title = say("title");
  const begin = (): void => {
    const client = new Client({ server: "", key: tab.get(KEY), project: tab.get(PROJECT) || null });
    const chat = new Chat({
      client,
      say,
      title: say("title"),
      useKey: (key) => again(() => tab.set(KEY, key)),
      // The project that is asked when none is named has its conversation under no name.
      welcomed: (id) => tab.get(PROJECT) || tab.set(FIRST, id),
      pickProject: (id) => again(() => tab.set(PROJECT, id === tab.get(FIRST) ? "" : id)),
    });
    const selection = new SelectionButton(chat.element, say("about"), (text) => chat.select(text));
    const again = (change: () => void): void => {
      change();
      selection.end();
      chat.end();
      begin();
    };
    document.body.append(chat.element, selection.element);
    chat.focus();
    void chat.start();
  };
  begin();
}

// A server that asks for a key is opened as /chat#key=cw_…; what follows the # never leaves the browser on its own.
const given = new URLSearchParams(location.hash.slice(1)).get("key");
if (given) {
  tab.set(KEY, given);
  history.replaceState(null, "", location.pathname + location.search);
}
dress(document, style, formulas);
void open();
