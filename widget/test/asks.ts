import type { Asks } from "../src/answer";
import english from "../src/languages/en.json";
import { Tip } from "../src/tip";
import { speak } from "../src/words";

/** A chat that does nothing of what a message asks of it. */
export const asks: Asks = {
  say: speak(english),
  tip: new Tip(),
  open: () => undefined,
  retry: () => undefined,
  vote: () => undefined,
  copy: () => undefined,
  askWhole: () => undefined,
  keyForm: () => null,
};
