import type { Client } from "../api/client";
import type { Translate } from "../i18n/translations";

/** What a chat needs from the page or widget that shows it. */
export interface ChatOptions {
  client: Client;
  t: Translate;
  /** What stands in the header, whatever the documents are called. */
  heading?: string | undefined;
  /** What the documents are called and what to tell a reader first, where the page knows it before the server says so. */
  title?: string | undefined;
  welcome?: string | undefined;
  hasLogo?: boolean;
  /** Questions to begin with, instead of those of the server. */
  questions?: string[] | undefined;
  /** Called with what stands in the header when the server has named the documents. */
  onHeading?: (heading: string) => void;
  /** Closes the widget. */
  onClose?: () => void;
  /** Called with the API key that the reader enters; without it, the chat does not offer to enter one. */
  onKey?: (key: string) => void;
  /** Called with the id of the project that the server answers from. */
  onProjectKnown?: (id: string) => void;
  /** Called when the reader picks a project; "" is the default one. Without it, there is no picker. */
  onPickProject?: (id: string) => void;
}
