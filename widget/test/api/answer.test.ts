import { expect, test } from "vitest";
import { readAnswer, readSelection } from "../../src/api/answer";
import type { components } from "../../src/api/schema";

type Schemas = components["schemas"];

const SHARED = {
  sources: [
    {
      source_url: "https://book.example.org/feet.md",
      title: "Feet",
      section: "Landing",
      chunk_position: 0,
      similarity_score: 0.5,
      snippet: "A foot lands.",
      quotes: [null, "lands"],
    },
  ],
  metadata: { query_time_ms: 1, retrieval_count: 1, mode: "full", low_confidence: false, request_id: "r" },
  confidence: 0.8,
  nearest: [{ title: "Gait", source_file: "gait.md", url: null }],
  support: [
    { sentence: "Yes.", verdict: "supported", score: 1, chunk_ids: [] },
    { sentence: "No.", verdict: "weak", score: 0.4, chunk_ids: [] },
  ],
  unsupported: ["The moon is made of cheese."],
  notice: "No LLM wrote this.",
} satisfies Partial<Schemas["ChatResponse"]>;
const live: Schemas["ChatResponse"] = { ...SHARED, answer: "Yes. No.", fallback_message: null, session_id: "s" };
const stored: Schemas["HistoryEntry"] = { ...SHARED, response: "Yes. No.", query: "?", timestamp: "2026-01-01T10:00:00Z", complete: true };

test("a new answer and the same answer from the history are read alike", () => {
  expect(readAnswer(stored)).toEqual(readAnswer(live));
  expect(readAnswer(live)).toMatchObject({
    content: "Yes. No.",
    standing: "answered",
    flagged: [{ sentence: "No.", verdict: "weak" }],
    unsupported: ["The moon is made of cheese."],
    citations: [{ chapterTitle: "Feet", sourceFile: "feet.md", excerpt: "lands", url: "https://book.example.org/feet.md" }],
    requestId: "r",
  });
});

test.each([
  ["silent", { mode: "retrieval_only" }, 0.5],
  ["uncovered", { mode: "no_results" }, 0],
  ["outside-selection", { mode: "selected_text" }, 0],
  ["answered", { mode: "selected_text" }, 0.5],
  ["unsure", { low_confidence: true }, 0.5],
] as const)("an answer is %s where its metadata has %o and its confidence is %d", (standing, metadata, confidence) => {
  expect(readAnswer({ ...live, confidence, metadata: { ...SHARED.metadata, ...metadata } }).standing).toBe(standing);
});

test("an answer that the reader left is stopped", () => {
  expect(readAnswer({ ...stored, complete: false }).standing).toBe("stopped");
});

test("without an LLM, the fallback message is the text", () => {
  expect(readAnswer({ ...live, answer: null, fallback_message: "Unavailable." }).content).toBe("Unavailable.");
});

test("the selection of a question is no citation", () => {
  const sources: Schemas["ChatResponse"]["sources"] = [
    { source_type: "selected_text", selection_length: 5, snippet: "Feet.", relevance_note: "" },
  ];
  expect(readAnswer({ ...live, sources }).citations).toEqual([]);
  expect(readSelection(sources)).toBe("Feet.");
});
