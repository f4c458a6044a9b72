import { describe, expect, test } from "vitest";
import { readEvents, SseParser } from "../../src/api/sse";

const STREAM =
  ': still here\n\ndata: {"delta":"Füße 👣 — "}\n\nevent: odd\nid: 7\ndata: {"delta":"[1]"}\n\n: beat\n\ndata: {"done":true}\n\n';
const EVENTS = ['{"delta":"Füße 👣 — "}', '{"delta":"[1]"}', '{"done":true}'];

function streamed(bytes: Uint8Array, ...cuts: number[]): ReadableStream<Uint8Array> {
  const ends = [...cuts, bytes.length];
  return new ReadableStream({
    start(controller) {
      ends.forEach((end, number) => controller.enqueue(bytes.slice(number ? ends[number - 1] : 0, end)));
      controller.close();
    },
  });
}

async function readAll(body: ReadableStream<Uint8Array>): Promise<string[]> {
  const events: string[] = [];
  for await (const data of readEvents(body)) events.push(data);
  return events;
}

describe.each([
  ["LF", "\n"],
  ["CRLF", "\r\n"],
  ["CR", "\r"],
])("lines that end in %s", (_, end) => {
  const bytes = new TextEncoder().encode(STREAM.replaceAll("\n", end));

  test("give every event, wherever the bytes are cut in two", async () => {
    for (let cut = 0; cut <= bytes.length; cut += 1) expect(await readAll(streamed(bytes, cut))).toEqual(EVENTS);
  });

  test("give every event byte by byte", async () => {
    expect(await readAll(streamed(bytes, ...bytes.keys()))).toEqual(EVENTS);
  });
});

test("comments and other fields are not events", () => {
  expect(new SseParser().push(": still here\n\nevent: x\nretry: 5\n\n")).toEqual([]);
});

test("data of several lines is one event, and a space after the colon is not part of it", () => {
  expect(new SseParser().push("data: a\ndata:b\ndata:  c\n\n")).toEqual(["a\nb\n c"]);
});

test("data with a colon in it, and a field without one", () => {
  expect(new SseParser().push("data: a: b\ndata\n\n")).toEqual(["a: b\n"]);
});

test("an event that is not finished is not returned", () => {
  const parser = new SseParser();
  expect(parser.push("data: half\n")).toEqual([]);
  expect(parser.push("\n")).toEqual(["half"]);
});

test("a byte order mark at the start is ignored", async () => {
  expect(await readAll(streamed(new TextEncoder().encode("\uFEFFdata: x\n\n")))).toEqual(["x"]);
});

test("the stream is cancelled when its reader stops", async () => {
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode("data: x\n\n")),
    cancel: () => {
      cancelled = true;
    },
  });
  for await (const _ of readEvents(body)) break;
  expect(cancelled).toBe(true);
});
