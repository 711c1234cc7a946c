import { removeAt, valueAt } from "./json_path.ts";
import type { Outcome, Projection, Step } from "./transcript.ts";

/** The headers that are part of the behaviour. */
const HEADERS = [
  "content-type",
  "warning",
  "allow",
  "retry-after",
  "content-encoding",
  "www-authenticate",
];

/** Projects an outcome to the compared values in the form of the recordings. */
export function project(step: Step, outcome: Outcome): Projection {
  const compare = step.compare ??
    (step.poll !== undefined || step.setup || step.cleanup ? "status" : "full");
  if (compare === "none") return {};
  if (compare === "status") return { status: outcome.status };
  const value = structuredClone(
    outcome.events ? { events: outcome.events } : outcome.body,
  );
  tidy(value);
  for (const path of step.ignore ?? []) removeAt(value, path);
  return {
    status: outcome.status,
    headers: keptHeaders(step, outcome.headers ?? {}),
    ...(outcome.closed === undefined ? {} : { closed: outcome.closed }),
    ...(step.pick
      ? {
        picked: Object.fromEntries(
          step.pick.map((
            path,
          ) => [path, valueAt(value, path) ?? absent(value, path)]),
        ),
      }
      : outcome.events
      ? { events: (value as { events: unknown }).events }
      : { body: value }),
  };
}

/** Marks an absent value, which differs from null. */
function absent(value: unknown, path: string): unknown {
  return valueAt(value, path) === null ? null : "<absent>";
}

function keptHeaders(
  step: Step,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of HEADERS) {
    const value = headers[name];
    if (value === undefined || step.ignoreHeaders?.includes(name)) continue;
    kept[name] = name === "retry-after" ? "<present>" : value;
  }
  return kept;
}

/**
 * Sorts what a real server orders at random or by the second of a write:
 * managers of fields, causes of a Status.
 */
function tidy(value: unknown): void {
  if (value === null || typeof value !== "object") return;
  if (!Array.isArray(value)) {
    const object = value as Record<string, unknown>;
    if (object.creationTimestamp === null) delete object.creationTimestamp;
    if (Array.isArray(object.managedFields)) sortOwners(object.managedFields);
    if (object.kind === "Status") sortCauses(object);
  }
  for (const item of Object.values(value)) tidy(item);
}

function sortOwners(entries: Record<string, unknown>[]): void {
  sortByKey(entries, (entry) =>
    [
      entry.operation,
      entry.manager,
      entry.subresource ?? "",
      entry.apiVersion,
      JSON.stringify(entry.fieldsV1),
    ].join("\0"));
}

function sortByKey<T>(items: T[], key: (item: T) => string): void {
  items.sort((a, b) => key(a) < key(b) ? -1 : 1);
}

function sortCauses(status: Record<string, unknown>): void {
  const details = status.details as
    | { causes?: Record<string, string>[] }
    | undefined;
  if (!Array.isArray(details?.causes)) return;
  const line = (cause: Record<string, string>) =>
    `${cause.field}: ${cause.message}`;
  sortByKey(details.causes, (cause) => `${line(cause)}\0${cause.reason}`);
  const text = String(status.message ?? "");
  const lines = [...new Set(details.causes.map(line))].join(", ");
  const mark = " is invalid: [";
  const at = text.indexOf(mark);
  // The message lists the same lines, in the same random order.
  if (at > 0 && text.length === at + mark.length + lines.length + 1) {
    status.message = `${text.slice(0, at + mark.length)}${lines}]`;
  }
}
