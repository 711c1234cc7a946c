import type { Problem } from "./cel_errors.ts";
import {
  type CelType,
  DYN,
  optionalValue,
  sameType,
  typeText,
} from "./cel_type.ts";
import type {
  CallNode,
  ExpressionNode,
  ListNode,
  MapNode,
} from "./expression.ts";
import { partsOf } from "./expression.ts";
import { formatProblem } from "./format_text.ts";
import { parseGoDuration, parseTime } from "./go_time.ts";
import { pattern } from "./pattern.ts";
import { isTime } from "./standard_functions.ts";

/** Whether a literal can be an argument of a conversion. */
const FITS: Readonly<Record<string, (value: unknown) => boolean>> = {
  duration: (value) =>
    typeof value === "string" && parseGoDuration(value) !== undefined,
  timestamp: (value) => {
    const nanos = typeof value === "bigint"
      ? value * 1_000_000_000n
      : parseTime(String(value))?.nanos;
    return nanos !== undefined && isTime(nanos);
  },
  matches: (value) =>
    typeof value !== "string" || pattern(value).problem === undefined,
};

/**
 * Problems of literals of a checked expression, which Kubernetes refuses when it
 * compiles: durations, times, patterns and formats that are none, and lists and
 * maps of mixed types.
 */
export function literalProblems(root: ExpressionNode): readonly Problem[] {
  const problems: Problem[] = [];
  const seen = new Set<ExpressionNode>();
  const visit = (node: ExpressionNode, mixed: boolean): void => {
    if (seen.has(node)) return;
    seen.add(node);
    if (node.kind === "call") problems.push(...callProblems(node));
    if (!mixed && node.kind === "list") problems.push(...listProblems(node));
    if (!mixed && node.kind === "map") problems.push(...mapProblems(node));
    // The arguments of a format may have any types.
    const inner = mixed || node.kind === "call" && node.name === "format";
    for (const part of partsOf(node)) visit(part, inner);
  };
  visit(root, false);
  return problems;
}

function callProblems(node: CallNode): Problem[] {
  const { name, args, target } = node;
  const problem = name === "format" ? formatProblem(node) : undefined;
  if (problem) return [problem];
  const fits = Object.hasOwn(FITS, name) ? FITS[name] : undefined;
  const argument = name === "matches" ? args.at(-1) : args[0];
  if (fits === undefined || argument?.kind !== "literal") return [];
  if (name !== "matches" && target !== undefined) return [];
  return fits(argument.value)
    ? []
    : [{ at: argument.at, message: `invalid ${name} argument` }];
}

function mismatch(
  { at }: ExpressionNode,
  expected: CelType,
  found: CelType,
): Problem {
  const [one, other] = [expected, found].map(typeText);
  return { at, message: `expected type '${one}' but found '${other}'` };
}

function elementType(
  { type = DYN }: ExpressionNode,
  optional: boolean,
): CelType {
  return optional ? optionalValue(type) ?? type : type;
}

function listProblems({ items, optional }: ListNode): Problem[] {
  let first: CelType | undefined;
  for (const [index, item] of items.entries()) {
    const type = elementType(item, optional.has(index));
    first ??= type;
    if (!sameType(first, type)) return [mismatch(item, first, type)];
  }
  return [];
}

function mapProblems({ entries }: MapNode): Problem[] {
  const problems: Problem[] = [];
  let keys: CelType | undefined;
  let values: CelType | undefined;
  for (const { key, value, optional } of entries) {
    const keyType = elementType(key, false);
    const valueType = elementType(value, optional);
    keys ??= keyType;
    values ??= valueType;
    if (!sameType(keys, keyType)) problems.push(mismatch(key, keys, keyType));
    if (!sameType(values, valueType)) {
      problems.push(mismatch(value, values, valueType));
    }
  }
  return problems;
}
