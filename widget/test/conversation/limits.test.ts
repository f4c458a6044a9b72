import { describe, expect, test } from "vitest";
import openapi from "../../../docs/openapi.json";
import {
  cleanText,
  isBlank,
  MAX_QUESTION,
  MAX_SELECTION,
  type Problem,
  questionProblem,
  selectionProblem,
} from "../../src/conversation/limits";

const LONG_QUESTION = (n: number): Problem => ({ key: "longQuestion", values: { n, m: MAX_QUESTION } });

test("the limits are those of the API", () => {
  const { query, selected_text } = openapi.components.schemas.ChatRequest.properties;
  expect(query.maxLength).toBe(MAX_QUESTION);
  expect(selected_text.anyOf.find(({ type }) => type === "string")).toMatchObject({ maxLength: MAX_SELECTION });
});

describe("a question", () => {
  test.each(["?", "Why?", "为什么", "🤖", "é", "0", "a\u200bb", "🏳️‍🌈", "x".repeat(MAX_QUESTION), "🤖".repeat(MAX_QUESTION)])(
    "%# is asked",
    (text) => expect(questionProblem(text)).toBeNull(),
  );

  test.each(["", " \t\n", "\u00a0\u3000", "\u200b", "\u200b\u200d\u2060", "\ufeff", "\u00ad", "\u202e\u202c", "\u3164", "\u2800", "\ufe0f", "\0", "\x85"])(
    "without anything to see is not (%#)",
    (text) => {
      expect(isBlank(text)).toBe(true);
      expect(questionProblem(text)).toEqual({ key: "noQuestion" });
    },
  );

  test("is counted in characters, not in units of UTF-16", () => {
    expect(questionProblem("x".repeat(MAX_QUESTION + 1))).toEqual(LONG_QUESTION(MAX_QUESTION + 1));
    expect(questionProblem("🤖".repeat(MAX_QUESTION) + "x")).toEqual(LONG_QUESTION(MAX_QUESTION + 1));
  });
});

test("a selection has limits of its own", () => {
  expect(selectionProblem("x".repeat(MAX_SELECTION))).toBeNull();
  expect(selectionProblem("🤖".repeat(MAX_SELECTION + 1))).toEqual({ key: "longSelection", values: { n: MAX_SELECTION + 1, m: MAX_SELECTION } });
  expect(selectionProblem(" \u200b ")).toEqual({ key: "noSelection" });
});

test("half a character, which the API refuses, is replaced before it is sent", () => {
  expect(cleanText(" robot \ud83e ")).toBe("robot \ufffd");
  expect(cleanText("\udd16 🤖")).toBe("\ufffd 🤖");
});
