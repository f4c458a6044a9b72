/** Server-sent events as they arrive: cut anywhere, with any line ends, with comments between. */

export class SseParser {
  #rest = "";
  #data: string[] = [];
  #begun = false;
  #halfEnd = false;

  /** The `data` of every event that this piece of text completes. */
  push(text: string): string[] {
    if (!this.#begun && text) {
      this.#begun = true;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    this.#rest += text;
    const whole: string[] = [];
    for (;;) {
      // The LF of a CRLF may come later than its CR, which ends the line already.
      if (this.#halfEnd && this.#rest) {
        if (this.#rest.startsWith("\n")) this.#rest = this.#rest.slice(1);
        this.#halfEnd = false;
      }
      const end = this.#rest.search(/[\r\n]/);
      if (end < 0) return whole;
      this.#halfEnd = this.#rest[end] === "\r";
      this.#line(this.#rest.slice(0, end), whole);
      this.#rest = this.#rest.slice(end + 1);
    }
  }

  #line(line: string, whole: string[]): void {
    if (!line) {
      if (this.#data.length) whole.push(this.#data.join("\n"));
      this.#data = [];
      return;
    }
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line)!;
    if (name === "data") this.#data.push(value!);
  }
}

/** The `data` of each event in a stream of bytes; a character that is cut in two is put together again. */
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
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
