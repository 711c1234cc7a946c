import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer } from "@coracle/dev/apiserver";
import type {
  ApplyObject,
  Kind,
  UntypedObject,
} from "@coracle/operator/client";
import { keyOf } from "../../../core/api/object_key.ts";
import { desiredObject } from "../../../workflows/dependents/dependent_resource.ts";
import { MatchMemory } from "../../../workflows/dependents/field_match.ts";

/** One state of the server and what is asked for then. */
export interface MatcherCase {
  /** The case of JOSDK's suite that it corresponds to. */
  readonly of: string;
  readonly kind: Kind;
  /** What was applied; without metadata. */
  readonly applied: object;
  /** What another manager changed after that. */
  readonly foreign?: object;
  /** What no server would do, done to the stored object. */
  readonly spoil?: (stored: UntypedObject) => void;
  /** What is asked for now; by default what was applied. */
  readonly asked?: object;
  /** Where it differs; by default nowhere. */
  readonly differs?: string;
}

const labels = { app: "a" };

/** The spec of a workload with one container. */
export function workload(container: object = {}, more: object = {}): object {
  return {
    spec: {
      ...more,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: "web", image: "web:1", ...container }] },
      },
    },
  };
}

/** The path of the container of a {@linkcode workload}. */
export const WEB = '.spec.template.spec.containers[{"name":"web"}]';

/** Tests each of some cases, by what it is about. */
export function testMatcher(
  cases: Readonly<Record<string, MatcherCase>>,
): void {
  for (const [what, one] of Object.entries(cases)) {
    const verdict = one.differs === undefined ? "matches" : "does not match";
    test(`MatchMemory ${verdict} ${what} [${one.of}]`, () => play(one));
  }
}

async function play(one: MatcherCase): Promise<void> {
  const { kind, applied, foreign, spoil, asked = applied } = one;
  const server = await ApiServer.start({ port: false, seed: 1 });
  try {
    const { client } = server;
    const object = (fields: object) => {
      const { metadata, ...rest } = fields as Partial<UntypedObject>;
      return {
        ...rest,
        metadata: { namespace: "default", name: "a", ...metadata },
      } as ApplyObject<UntypedObject>;
    };
    const fieldManager = "controller";
    const manager = { fieldManager, force: true };
    const intent = desiredObject(kind, object(applied) as never);
    let stored = await client.apply(kind, intent, manager) as UntypedObject;
    if (foreign !== undefined) {
      stored = await client.patch(kind, keyOf(stored), foreign as never, {
        type: "strategic",
        fieldManager: "others",
      }) as UntypedObject;
    }
    stored = structuredClone(stored);
    spoil?.(stored);
    const field = MatchMemory.ofKind(kind).difference({
      id: "default/a",
      desired: "this",
      intent: desiredObject(kind, object(asked) as never) as never,
      actual: stored,
      fieldManager,
    });
    assert.equal(field, one.differs);
  } finally {
    await server.stop();
  }
}
