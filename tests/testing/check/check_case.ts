import assert from "node:assert/strict";
import type { JsonObject } from "../../../core/patch/json_value.ts";
import type {
  RunRecord,
  TracedEvent,
  TracedNote,
  TracedWrite,
  TraceEntry,
} from "../../../dev/testing/check/run_record.ts";
import { judge, judgeReference } from "../../../dev/testing/check/oracles.ts";
import type { Case, Violation } from "../../../dev/testing/check/violation.ts";
import type { Scenario } from "../../../dev/testing/check/workload.ts";

/** Object of a made-up run, with a UID made of its name. */
export function checkedObject(
  kind: string,
  name: string,
  more: JsonObject = {},
): JsonObject {
  return {
    apiVersion: kind === "Gadget" ? "sample.coracle.dev/v1" : "v1",
    kind,
    ...more,
    metadata: {
      namespace: "default",
      name,
      uid: `${kind}-${name}`,
      ...more["metadata"] as object,
    },
  };
}

/** Write of a made-up run, such as `create ConfigMap a`; numbers are set later. */
export function write(
  text: string,
  more: Partial<TracedWrite> = {},
): TracedWrite {
  const [verb = "", kind = "", name = ""] = text.split(" ");
  const effect = verb === "create"
    ? "created"
    : verb === "delete"
    ? "deleted"
    : "changed";
  return {
    type: "write",
    number: 0,
    verb,
    kind,
    resource: `${kind.toLowerCase()}s`,
    group: "",
    namespace: "default",
    name,
    uid: `${kind}-${name}`,
    subresource: "",
    code: effect === "created" ? 201 : 200,
    reason: "",
    effect,
    disturbed: false,
    step: 0,
    at: 0,
    ...more,
  };
}

/** Event of a made-up run, such as `ADDED ConfigMap a`. */
export function event(
  text: string,
  more: Partial<TracedEvent> = {},
): TracedEvent {
  const [type = "ADDED", kind = "", name = ""] = text.split(" ");
  return {
    type: "event",
    number: 0,
    event: type as TracedEvent["event"],
    kind,
    resource: `${kind.toLowerCase()}s`,
    group: "",
    namespace: "default",
    name,
    uid: `${kind}-${name}`,
    revision: 0,
    step: 0,
    at: 0,
    ...more,
  };
}

export function note(what: string, text: string, step = 0): TracedNote {
  return { type: "note", what, text, step, at: 0 };
}

/** Run with numbered writes and events, whose revisions are their places. */
export function run(
  trace: readonly TraceEntry[],
  states: readonly (readonly JsonObject[])[],
  more: Partial<RunRecord> = {},
): RunRecord {
  const counts = { write: 0, event: 0 };
  const numbered = trace.map((entry, at): TraceEntry =>
    entry.type === "write"
      ? { ...entry, number: ++counts.write }
      : entry.type === "event"
      ? { ...entry, number: ++counts.event, revision: at + 1 }
      : entry
  );
  return {
    trace: numbered,
    steps: states.map((objects, step) => ({
      text: `step ${step}`,
      quiet: true,
      objects,
      revision: 1 + numbered.findLastIndex((entry) => entry.step <= step),
      writes:
        numbered.filter((entry) => entry.type === "write" && entry.step <= step)
          .length,
    })),
    resting: [],
    before: [],
    idle: { duration: 86_400_000, writes: 0 },
    violations: [],
    readsEndpoints: false,
    unanswered: [],
    isPart: false,
    cpu: 1,
    ...more,
  };
}

/** Scenario whose steps apply a gadget, change it or delete it. */
export function scenario(
  ...steps: ("apply" | "delete")[]
): Scenario {
  return {
    name: "life",
    known: 0,
    steps: steps.map((step) =>
      step === "apply"
        ? { apply: checkedObject("Gadget", "a") }
        : { delete: checkedObject("Gadget", "a") }
    ),
  };
}

export const gadget: JsonObject = checkedObject("Gadget", "a");
export const service: JsonObject = checkedObject("Service", "a", {
  spec: { port: 80 },
});
export const create: TracedWrite = write("create Service a");
/** Run in which a gadget gets a service. */
export const reference: RunRecord = run(
  [event("ADDED Gadget a"), create],
  [[gadget, service]],
);

/** Violations of a run with disturbances. */
export function judged(
  found: RunRecord,
  more: Partial<Case> = {},
): readonly Violation[] {
  return judge({
    scenario: scenario("apply"),
    plan: { scenario: "life", perturbations: [] },
    reference,
    run: found,
    masked: new Set(),
    primaryKinds: new Set(["Gadget"]),
    ...more,
  });
}

/** Violations of a run without disturbances. */
export function clean(
  found: RunRecord,
  ...steps: ("apply" | "delete")[]
): readonly Violation[] {
  return judgeReference({
    scenario: scenario(...steps),
    reference: found,
    masked: new Set(),
    primaryKinds: new Set(["Gadget"]),
  });
}

/** The only violation of a list. */
export function only(violations: readonly Violation[]): Violation {
  assert.equal(violations.length, 1, JSON.stringify(violations, undefined, 1));
  return violations[0]!;
}
