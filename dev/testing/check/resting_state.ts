/**
 * States in which an operator rests between two steps of a workload. Where a run
 * comes to rest in a state from which an earlier run went on without a finding,
 * the rest of it shows nothing new.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { JsonObject } from "@coracle/operator/internal";
import type { RunRecord } from "./run_record.ts";
import { clusterState, UID_REGEXP } from "./state.ts";
import type { RequestEntry, TraceEntry } from "./trace.ts";

const TIME_REGEXP = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z/g;
const REVISION_REGEXP = /"resourceVersion":"\d+"/g;
/** Resources whose requests are not part of what an operator knows. */
const RECORDS: ReadonlySet<string> = new Set(["leases", "events"]);

/**
 * Key of a state at rest: the objects, what the process of the operator has
 * requested since it started, without order and number, and how often it has
 * requested what outside of the cluster.
 *
 * @param trace Trace of the run so far.
 * @param objects Objects of the cluster.
 * @param incarnation Number of the process of the operator.
 */
export function restingKey(
  trace: readonly TraceEntry[],
  objects: readonly JsonObject[],
  incarnation: number,
): string {
  const uids = new Map<string, string>();
  const counts = new Map<string, number>();
  const requests = new Set<string>();
  const calls = new Map<string, number>();
  const plain = (text: string) =>
    text.replace(UID_REGEXP, (uid) => uids.get(uid) ?? uid)
      .replace(REVISION_REGEXP, "").replace(TIME_REGEXP, "<time>");
  for (const entry of trace) {
    if (entry.type === "external") {
      const call = plain(`${entry.method} ${entry.url} ${entry.body ?? ""}`);
      calls.set(call, (calls.get(call) ?? 0) + 1);
      continue;
    }
    if (!("resource" in entry)) continue;
    const { resource, namespace, name, uid } = entry;
    if (uid !== undefined && uid !== "" && !uids.has(uid)) {
      const object = `${resource}/${namespace}/${name}`;
      const count = (counts.get(object) ?? 0) + 1;
      counts.set(object, count);
      uids.set(uid, `<${object} ${count}>`);
    }
    const isKnown = entry.type === "request" && entry.verb !== "watch" &&
      entry.incarnation === incarnation && !RECORDS.has(resource);
    if (isKnown) requests.add(plain(requestText(entry)));
  }
  return createHash("sha256").update(JSON.stringify([
    [...clusterState(objects)],
    [...requests].sort(),
    [...calls].sort(),
  ])).digest("base64");
}

/** What an operator may remember of a request. */
function requestText(entry: RequestEntry): string {
  const { verb, code, answered } = entry;
  if (!answered) return `${verb} without an answer`;
  return code < 300 || code === 404
    ? `${verb} ${entry.path} ${entry.body ?? ""} ${code < 300}`
    : `${verb} ${code}`;
}

/** Completes a run that was cut short by the rest of its reference run. */
export function continued(run: RunRecord, reference: RunRecord): RunRecord {
  const { length } = run.steps;
  return {
    ...run,
    steps: [...run.steps, ...reference.steps.slice(length)],
    trace: [
      ...run.trace,
      ...reference.trace.filter(({ step }) => step >= length),
    ],
  };
}
