import type { AnswerContext } from "../../src/chat/answer";
import { Tooltip } from "../../src/chat/tooltip";
import english from "../../src/i18n/languages/en.json";
import { translator } from "../../src/i18n/translations";

/** A chat in which every action does nothing. */
export const context: AnswerContext = {
  t: translator(english),
  title: () => undefined,
  tooltip: new Tooltip(),
  openSource: () => undefined,
  retry: () => undefined,
  vote: () => undefined,
  copy: () => undefined,
  askAllDocuments: () => undefined,
  createKeyForm: () => null,
};
