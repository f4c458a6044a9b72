/** Reads server-sent events, however the bytes are split and whichever line endings they use. */

export class SseParser {
  #buffer = "";
  #data: string[] = [];
  #started = false;
  #afterCarriageReturn = false;

  /** The `data` of every event that this text completes. */
  push(text: string): string[] {
    if (!this.#started && text) {
      this.#started = true;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    this.#buffer += text;
    const events: string[] = [];
    for (;;) {
      // A CR ends the line. The LF of a CRLF may arrive later and belongs to the same line end.
      if (this.#afterCarriageReturn && this.#buffer) {
        if (this.#buffer.startsWith("\n")) this.#buffer = this.#buffer.slice(1);
        this.#afterCarriageReturn = false;
      }
      const end = this.#buffer.search(/[\r\n]/);
      if (end < 0) return events;
      this.#afterCarriageReturn = this.#buffer[end] === "\r";
      this.#parseLine(this.#buffer.slice(0, end), events);
      this.#buffer = this.#buffer.slice(end + 1);
    }
  }

  #parseLine(line: string, events: string[]): void {
    if (!line) {
      if (this.#data.length) events.push(this.#data.join("\n"));
      this.#data = [];
      return;
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line)!;
    if (field === "data") this.#data.push(value!);
  }
}

/** The `data` of each event in a stream of UTF-8 bytes. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const parser = new SseParser();
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
