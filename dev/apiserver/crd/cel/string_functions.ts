import { goNumber } from "../../validation/go_value.ts";
import { goRegExp } from "../schema/regular_expression.ts";
import { CelFailure, celTypeName } from "./cel_failure.ts";
import type { CelExtension } from "./cel_library.ts";

/** Functions on texts that Kubernetes adds to CEL. */
export const STRINGS: CelExtension = {
  namespaces: { strings: "StringsNamespace" },
  functions: {
    "StringsNamespace.quote(string): string": (_: unknown, text: string) =>
      JSON.stringify(text),
    "string.charAt(int): string": charAt,
    "string.replace(string, string): string": replace,
    "string.replace(string, string, int): string": replace,
    "string.format(ast): string": formatMacro,
    "string.find(string): string": find,
    "string.findAll(string): list<string>": findAll,
    "string.findAll(string, int): list<string>": findAll,
    "string(google.protobuf.Timestamp): string": (time: Date) =>
      time.toISOString().replace(/\.000Z$/, "Z"),
    "string(google.protobuf.Duration): string": String,
    "int(google.protobuf.Timestamp): int": (time: Date) =>
      BigInt(Math.floor(time.getTime() / 1000)),
    "int(uint): int": ({ value }: { readonly value: bigint }) => value,
  },
};

function charAt(text: string, position: bigint): string {
  const characters = [...text];
  if (position < 0n || position > BigInt(characters.length)) {
    throw new CelFailure(`index out of range: ${position}`);
  }
  return characters[Number(position)] ?? "";
}

/** Replaces the first `most` occurrences of a text; all if `most` is negative. */
function replace(
  text: string,
  from: string,
  to: string,
  most: bigint = -1n,
): string {
  if (most < 0n) return text.replaceAll(from, () => to);
  let result = "";
  let rest = text;
  for (let count = 0n; count < most; count++) {
    const at = rest.indexOf(from);
    if (at < 0) break;
    result += rest.slice(0, at) + to;
    rest = rest.slice(at + from.length);
  }
  return result + rest;
}

function compiled(pattern: string, flags = ""): RegExp {
  const regexp = goRegExp(pattern);
  if (regexp === undefined) {
    throw new CelFailure(`Illegal regex: ${pattern}`);
  }
  return new RegExp(regexp.source, regexp.flags + flags);
}

function find(text: string, pattern: string): string {
  return compiled(pattern).exec(text)?.[0] ?? "";
}

function findAll(text: string, pattern: string, most: bigint = -1n): string[] {
  const found = [...text.matchAll(compiled(pattern, "g"))].map(([match]) =>
    match
  );
  return most < 0n ? found : found.slice(0, Number(most));
}

/** Node of a parsed CEL expression. */
interface MacroNode {
  readonly op: string;
  readonly args: unknown;
}

/** Type checker of the CEL library, as passed to macros. */
interface Checker {
  check(node: MacroNode, context: unknown): unknown;
  getType(name: string): unknown;
}

/** Evaluator of the CEL library, as passed to macros. */
interface Evaluator {
  run(node: MacroNode, context: unknown): unknown;
}

/**
 * Macro of `format()`. List literals must have items of one type, except the
 * argument of `format()`; the macro checks and evaluates its items one by one.
 */
function formatMacro(
  { args, receiver }: {
    readonly args: readonly MacroNode[];
    readonly receiver: MacroNode;
  },
): object {
  const [list] = args as [MacroNode];
  const items = list.op === "list"
    ? list.args as readonly MacroNode[]
    : undefined;
  return {
    typeCheck(checker: Checker, _: unknown, context: unknown): unknown {
      checker.check(receiver, context);
      for (const node of items ?? [list]) checker.check(node, context);
      return checker.getType("string");
    },
    evaluate(evaluator: Evaluator, _: unknown, context: unknown): string {
      const template = evaluator.run(receiver, context);
      const values = items === undefined
        ? [...evaluator.run(list, context) as Iterable<unknown>]
        : items.map((node) => evaluator.run(node, context));
      return format(String(template), values);
    },
  };
}

const VERB_REGEXP = /%(?:%|(\.\d+)?([sdfebxXo]))|%/g;

/** Formats values by the subset of Go's verbs that CEL supports. */
function format(template: string, values: readonly unknown[]): string {
  let next = 0;
  return template.replace(
    VERB_REGEXP,
    (whole, precision: string | undefined, verb: string | undefined) => {
      if (whole === "%%") return "%";
      if (verb === undefined) {
        throw new CelFailure("could not parse formatting clause");
      }
      if (next >= values.length) {
        throw new CelFailure(`index ${next} out of range`);
      }
      return formatted(values[next++], verb, Number(precision?.slice(1) ?? 6));
    },
  );
}

function formatted(value: unknown, verb: string, digits: number): string {
  switch (verb) {
    case "s":
      return shown(value);
    case "d":
      if (typeof value === "bigint") return value.toString();
      break;
    case "f":
      return Number(value).toFixed(digits);
    case "e":
      return scientific(Number(value), digits);
    case "b":
      if (typeof value === "boolean") return value ? "1" : "0";
      if (typeof value === "bigint") return value.toString(2);
      break;
    case "o":
      if (typeof value === "bigint") return value.toString(8);
      break;
    case "x":
    case "X": {
      const hex = typeof value === "bigint"
        ? value.toString(16)
        : typeof value === "string"
        ? hexOf(new TextEncoder().encode(value))
        : value instanceof Uint8Array
        ? hexOf(value)
        : undefined;
      if (hex !== undefined) return verb === "X" ? hex.toUpperCase() : hex;
    }
  }
  throw new CelFailure(
    `error during formatting: %${verb} cannot show a value of type ${
      celTypeName(value)
    }`,
  );
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** Number in scientific notation; the exponent has at least two digits. */
function scientific(value: number, digits: number): string {
  const [mantissa = "", exponent = ""] = value.toExponential(digits).split("e");
  const sign = exponent.startsWith("-") ? "⁻" : "";
  const raised = exponent.slice(1).padStart(2, "0")
    .replace(/\d/g, (digit) => SUPERSCRIPTS[Number(digit)] ?? "");
  return `${mantissa} × 10${sign}${raised}`;
}

function hexOf(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Text of a value for `%s`; texts within lists and maps are quoted. */
function shown(value: unknown): string {
  if (typeof value === "number") return goNumber(value);
  if (value === null) return "null";
  if (Array.isArray(value) || value instanceof Set) {
    return `[${[...value].map(quotedWithin).join(", ")}]`;
  }
  if (value instanceof Map) {
    const entries = [...value].map(([key, entry]) =>
      `${quotedWithin(key)}:${quotedWithin(entry)}`
    );
    return `{${entries.sort().join(", ")}}`;
  }
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  if (value instanceof Date) return value.toISOString().replace(/\.000Z$/, "Z");
  return String(value);
}

function quotedWithin(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : shown(value);
}
