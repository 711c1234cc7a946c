/**
 * Requests of an operator outside the cluster, and which parts of their bodies
 * differ in every run.
 *
 * @module
 */
import { isJsonObject } from "../../core/patch/json_value.ts";
import { notesOf, type RunRecord, type TracedNote } from "./run_record.ts";
import {
  differenceName,
  fieldPath,
  type StateDifference,
  stateDifferences,
} from "./state.ts";

/** Requests of a run that may change something outside the cluster, in order. */
export function callsOf(
  record: Pick<RunRecord, "trace">,
): readonly TracedNote[] {
  return notesOf(record, "external").filter(({ text }) =>
    !/^(GET|HEAD|OPTIONS) /.test(text)
  );
}

/**
 * Finds the differences between the bodies of equal requests of two runs. Each
 * has the name `METHOD:origin .body.field`, so that it holds for all paths.
 */
export function callDifferences(
  a: Pick<RunRecord, "trace">,
  b: Pick<RunRecord, "trace">,
): readonly StateDifference[] {
  const others = Map.groupBy(callsOf(b), placeOf);
  return callsOf(a).flatMap((call) => {
    const other = others.get(placeOf(call))?.shift();
    if (other === undefined) return [];
    const key = originOf(call);
    return stateDifferences(
      new Map([[key, { body: bodyOf(call) }]]),
      new Map([[key, { body: bodyOf(other) }]]),
    );
  });
}

/**
 * Formats a request for comparisons: `<differs>` replaces what is masked, by the
 * names of {@linkcode callDifferences}.
 */
export function comparableCall(
  call: TracedNote,
  masked: ReadonlySet<string>,
): string {
  const object = originOf(call);
  let isMasked = false;
  const walk = (value: unknown, path: string): unknown => {
    if (masked.has(differenceName({ object, path }))) {
      isMasked = true;
      return "<differs>";
    }
    if (Array.isArray(value)) {
      return value.map((item, at) => walk(item, `${path}[${at}]`));
    }
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([field, inner]) => [
        field,
        walk(inner, fieldPath(path, field)),
      ]),
    );
  };
  const body = walk(bodyOf(call), ".body");
  if (!isMasked) return call.text;
  const [method, url] = call.text.split(" ", 2);
  return `${method} ${url} ${
    typeof body === "string" ? body : JSON.stringify(body)
  }`;
}

/** Step, method and URL of a request. */
function placeOf({ text, step }: TracedNote): string {
  return [step, ...text.split(" ", 2)].join(" ");
}

function originOf({ text }: TracedNote): string {
  const [method, url = ""] = text.split(" ", 2);
  return `${method}:${URL.canParse(url) ? new URL(url).origin : url}`;
}

/** Body of a request, decoded if it is JSON. */
function bodyOf({ body }: TracedNote): unknown {
  try {
    return JSON.parse(body ?? "null");
  } catch {
    return body;
  }
}
