/**
 * Requests of an operator outside the cluster, and which parts of their bodies
 * and URLs differ in every run.
 *
 * @module
 */
import { isJsonObject } from "@coracle/operator/internal";
import { notesOf, type RunRecord, type TracedNote } from "./run_record.ts";
import {
  differenceName,
  fieldPath,
  type StateDifference,
  stateDifferences,
  UID_REGEXP,
} from "./state.ts";

/** Number of characters of a body that a trace shows. */
export const SHOWN = 200;

/** A UID, or the beginning of one, which may be a short name. */
const UID_OR_START = new RegExp(`${UID_REGEXP.source}|\\b[0-9a-f]{8}\\b`, "g");

/**
 * Requests of a run that may change something outside the cluster, in order. A
 * UID of an object, or its first eight digits, is replaced by the object, since
 * it differs between runs.
 */
export function callsOf(
  record: Pick<RunRecord, "trace">,
): readonly TracedNote[] {
  const names = uidNames(record);
  const named = (text: string) =>
    text.replace(UID_OR_START, (uid) => names.get(uid) ?? uid);
  return notesOf(record, "external").filter(({ text }) =>
    !/^(GET|HEAD|OPTIONS) /.test(text)
  ).map((call) => {
    if (call.body === undefined) return { ...call, text: named(call.text) };
    const body = named(call.body);
    const place = named(call.text.split(" ", 2).join(" "));
    return { ...call, text: `${place} ${body.slice(0, SHOWN)}`, body };
  });
}

/** Names of the UIDs of a run, such as `<uid:Shop/default/a>`, by UID. */
function uidNames(
  { trace }: Pick<RunRecord, "trace">,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const counts = new Map<string, number>();
  for (const entry of trace) {
    if (entry.type === "note") continue;
    const { kind, namespace, name, uid } = entry;
    if (uid === "" || names.has(uid)) continue;
    const object = [kind, namespace, name].join("/");
    const count = (counts.get(object) ?? 0) + 1;
    counts.set(object, count);
    const text = count === 1 ? object : `${object}:${count}`;
    names.set(uid, `<uid:${text}>`).set(uid.slice(0, 8), `<uid:${text}…>`);
  }
  return names;
}

/**
 * Finds the differences between the bodies of equal requests of two runs, and
 * between the URLs of those that differ in some parts of it only. Each has a name
 * such as `METHOD:origin .body.field` or `METHOD:origin .url/items/*`, so that a
 * field holds for all paths.
 */
export function callDifferences(
  a: Pick<RunRecord, "trace">,
  b: Pick<RunRecord, "trace">,
): readonly StateDifference[] {
  const others = Map.groupBy(callsOf(b), placeOf);
  const left: TracedNote[] = [];
  const bodies = (call: TracedNote, other: TracedNote) => {
    const key = originOf(call);
    return stateDifferences(
      new Map([[key, { body: bodyOf(call) }]]),
      new Map([[key, { body: bodyOf(other) }]]),
    );
  };
  const found = callsOf(a).flatMap((call) => {
    const other = others.get(placeOf(call))?.shift();
    if (other !== undefined) return bodies(call, other);
    left.push(call);
    return [];
  });
  // Requests whose URLs contain what differs with the seed, such as random names.
  const similar = Map.groupBy([...others.values()].flat(), formOf);
  return [
    ...found,
    ...left.flatMap((call) => {
      const other = similar.get(formOf(call))?.shift();
      return other === undefined
        ? []
        : [...urlDifferences(call, other), ...bodies(call, other)];
    }),
  ];
}

/** Part of a URL: a segment of its path, or a value of its query. */
interface UrlPart {
  /** Name before the part, such as `/` or `?page=`. */
  readonly before: string;
  readonly value: string;
}

/** Parts of the URL of a request; undefined if it is invalid. */
function urlParts({ text }: TracedNote): readonly UrlPart[] | undefined {
  const [, url = ""] = text.split(" ", 2);
  if (!URL.canParse(url)) return undefined;
  // Not those of the URL, which encodes the names of UIDs.
  const [, path = "", query] =
    /^[a-z]+:\/\/[^/?]*([^?]*)(?:\?(.*))?$/.exec(url) ??
      [];
  const segments = path.split("/").slice(1);
  const pairs = query?.split("&") ?? [];
  return [
    ...segments.map((value) => ({ before: "/", value })),
    ...pairs.map((pair, at) => {
      const [name = "", ...value] = pair.split("=");
      const before = `${at === 0 ? "?" : "&"}${name}=`;
      return { before, value: value.join("=") };
    }),
  ];
}

/** Step, method, origin and form of the URL of a request. */
function formOf(call: TracedNote): string {
  const parts = urlParts(call)?.map(({ before }) => before);
  return `${call.step} ${originOf(call)} ${parts?.join("")}`;
}

function urlDifferences(
  call: TracedNote,
  other: TracedNote,
): readonly StateDifference[] {
  const [parts, others] = [urlParts(call) ?? [], urlParts(other) ?? []];
  const object = originOf(call);
  let path = ".url";
  return parts.flatMap(({ before, value }, at) => {
    const found = others[at]?.value;
    if (found === value) {
      path += before + value;
      return [];
    }
    path += `${before}*`;
    return [{ object, path, expected: value, found }];
  });
}

/** URL of a request, with `<differs>` for the parts that are masked. */
function comparableUrl(
  call: TracedNote,
  masked: ReadonlySet<string>,
): string {
  const [, url = ""] = call.text.split(" ", 2);
  const object = originOf(call);
  const parts = urlParts(call);
  if (parts === undefined) return url;
  let path = ".url";
  let text = /^[a-z]+:\/\/[^/?]*/.exec(url)?.[0] ?? "";
  for (const { before, value } of parts) {
    const isMasked = masked.has(
      differenceName({ object, path: `${path}${before}*` }),
    );
    path += before + (isMasked ? "*" : value);
    text += before + (isMasked ? "<differs>" : value);
  }
  return text;
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
  const [method = "", given = ""] = call.text.split(" ", 2);
  const url = comparableUrl(call, masked);
  if (!isMasked) {
    return `${method} ${url}${call.text.slice(`${method} ${given}`.length)}`;
  }
  return `${method} ${url} ${
    typeof body === "string" ? body : JSON.stringify(body)
  }`;
}

/** Step, method and URL of a request. */
function placeOf({ text, step }: TracedNote): string {
  return [step, ...text.split(" ", 2)].join(" ");
}

/** Method and origin of a request, such as `POST:http://acme.test`. */
export function originOf({ text }: Pick<TracedNote, "text">): string {
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
