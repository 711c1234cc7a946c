import {
  differences,
  HIDDEN,
  isSameShown,
  isSecretPath,
  type JsonDifference,
} from "@coracle/operator/internal";
import { readJson } from "../../apiserver/exact_json.ts";

/** Request as it is compared. */
export interface ComparedRequest {
  readonly method: string;
  readonly path: string;
  readonly type?: string | undefined;
  /** Text of the body; undefined if none exists, null if it was not kept. */
  readonly body?: string | null | undefined;
}

/** Field that differs between a recorded and a repeated request. */
export interface RequestField {
  /** Path of the field, such as `.spec.replicas`. */
  readonly path: string;
  /** Value as recorded; absent if there was none. */
  readonly recorded?: unknown;
  /** Value as repeated; absent if none exists. */
  readonly repeated?: unknown;
}

/** Run that two requests are of. */
export interface ComparedRun {
  /** Start and end as milliseconds since the Unix epoch. */
  readonly from: number;
  readonly to: number;
  /** Whether it has read Secrets, whose values are not in the recording. */
  readonly secrets: boolean;
}

const SECRETS = /^\/api\/v1\/(?:namespaces\/[^/]+\/)?secrets(?:[/?]|$)/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z$/;
/** A timer may fire so much later on a real machine, in milliseconds. */
const TIME_TOLERANCE_MS = 2_000;
/** Text of a digest, which follows from what it is of. */
const DIGEST =
  /^(?:(?:sha\d+[:-])?[0-9a-f]{6,128}|[A-Za-z0-9+/_-]{16,}={0,2})$/;

/** Whether two requests are equal, apart from their bodies. */
export function isSameRequest(a: ComparedRequest, b: ComparedRequest): boolean {
  return a.method === b.method && a.type === b.type &&
    isSameShown(a.path, b.path);
}

/**
 * Fields in which the bodies of two requests differ; undefined if they are equal.
 * Times are equal if both lie within the run, and so are values of Secrets.
 */
export function differingFields(
  recorded: ComparedRequest,
  repeated: ComparedRequest,
  run: ComparedRun,
): readonly RequestField[] | undefined {
  if (recorded.body === null || recorded.body === repeated.body) {
    return undefined;
  }
  const isSecret = SECRETS.test(recorded.path);
  const before = jsonOf(recorded.body ?? undefined);
  const after = jsonOf(repeated.body ?? undefined);
  const found = [...differences(before, after)].filter((one) =>
    !isTolerated(one, run) && !(isSecret && isHidden(one))
  );
  if (found.length === 0) return undefined;
  return found.map(({ path, ...values }) => {
    const value = (name: "after" | "before") =>
      isSecret && isSecretPath(path) ? HIDDEN : values[name];
    return {
      path: pathText(path),
      ..."before" in values && { recorded: value("before") },
      ..."after" in values && { repeated: value("after") },
    };
  });
}

/** Whether two texts are equal, or differ in times of the run alone. */
export function isSameText(a: string, b: string, run: ComparedRun): boolean {
  if (isSameShown(a, b)) return true;
  const [one, other] = [a.split(/\s+/), b.split(/\s+/)];
  return one.length === other.length && one.every((word, index) => {
    const second = other[index] as string;
    return isSameShown(word, second) || areTimes(word, second, run);
  });
}

function isTolerated(
  { before, after }: JsonDifference,
  run: ComparedRun,
): boolean {
  if (before === undefined || after === undefined) return false;
  // Nobody knows what a hidden text was: it may be a literal of the operator.
  if (isSameShown(valueText(before), valueText(after))) return true;
  if (typeof before !== "string" || typeof after !== "string") return false;
  if (areTimes(before, after, run)) return true;
  // A digest of a Secret's value is another than that of its stand-in.
  return run.secrets && before.length === after.length &&
    DIGEST.test(before) && DIGEST.test(after);
}

function valueText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function areTimes(a: string, b: string, { from, to }: ComparedRun): boolean {
  return [a, b].every((text) => {
    const time = TIME.test(text) ? Date.parse(text) : NaN;
    return time >= from - TIME_TOLERANCE_MS && time <= to + TIME_TOLERANCE_MS;
  });
}

/** Whether both sides have a value that is not kept. */
function isHidden({ path, before, after }: JsonDifference): boolean {
  const [first, second] = path;
  // In a JSON Patch the place is beside the value.
  const isValue = typeof first === "number" && second === "value";
  return (isValue || isSecretPath(path) && path.length > 1) &&
    typeof before === "string" && typeof after === "string";
}

function jsonOf(body: string | undefined): unknown {
  if (body === undefined) return undefined;
  try {
    return readJson(body);
  } catch {
    return body;
  }
}

function pathText(path: JsonDifference["path"]): string {
  return path.map((step) =>
    typeof step === "number"
      ? `[${step}]`
      : /^[\w-]+$/.test(step)
      ? `.${step}`
      : `[${JSON.stringify(step)}]`
  ).join("") || ".";
}

/** Text of a request, with those parameters that decide what it does. */
export function requestText(
  { method, path, type }: Omit<ComparedRequest, "body">,
): string {
  const { pathname, searchParams } = new URL(path, "http://server");
  const isApply = type?.startsWith("application/apply-patch") === true;
  for (const name of ["fieldManager", "force", "fieldValidation"]) {
    searchParams.delete(name);
  }
  const query = searchParams.size > 0 ? `?${searchParams}` : "";
  return `${isApply ? "apply" : method} ${pathname}${query}`;
}
