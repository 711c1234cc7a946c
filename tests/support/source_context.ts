import type {
  Clock,
  KubernetesObject,
  SourceContext,
  SourceEvent,
} from "@coracle/operator/core";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import { silentLogger } from "../../core/logger.ts";
import { noMetrics } from "../../core/metrics.ts";

/** Context of a source under test that records its calls. */
export interface RecordedContext extends SourceContext {
  /** The keys that were triggered, in order. */
  readonly triggered: string[];
  /** Why they were, in the same order. */
  readonly events: (SourceEvent | undefined)[];
  /** Keys whose failed runs were repeated, `"*"` for all, in order. */
  readonly retried: string[];
}

/** A context that records triggers, for tests of a source on its own. */
export function recordedContext(
  clock: Clock,
  primaries: readonly KubernetesObject[] = [],
  more: Partial<SourceContext> = {},
): RecordedContext {
  const triggered: string[] = [];
  const events: (SourceEvent | undefined)[] = [];
  const retried: string[] = [];
  const byKey = new Map(
    primaries.map((primary) => [keyText(keyOf(primary)), primary]),
  );
  return {
    controller: "test",
    primaryKind: {
      group: "example.com",
      version: "v1",
      kind: "Gadget",
      plural: "gadgets",
      scope: "Namespaced",
    },
    primaries: {
      get: (key) => byKey.get(typeof key === "string" ? key : keyText(key)),
      has: (key) => byKey.has(typeof key === "string" ? key : keyText(key)),
      keys: () => byKey.keys(),
      list: () => [...byKey.values()],
      byIndex: () => [],
      read: (key) =>
        Promise.resolve(
          byKey.get(typeof key === "string" ? key : keyText(key)),
        ),
      readList: () => Promise.resolve([...byKey.values()]),
    },
    namespaces: "all",
    // Sources that need neither are given none.
    client: undefined as unknown as SourceContext["client"],
    unfenced: undefined as unknown as SourceContext["client"],
    informers: undefined as unknown as SourceContext["informers"],
    fieldManagers: ["test"],
    takeOver: [],
    clock,
    log: silentLogger,
    metrics: noMetrics,
    get: () => Promise.resolve(undefined),
    list: () => Promise.resolve([]),
    ...more,
    triggered,
    events,
    retried,
    trigger(key, event) {
      triggered.push(typeof key === "string" ? key : keyText(key));
      events.push(event);
      return true;
    },
    retryFailed(key = "*") {
      retried.push(key);
    },
  };
}

/** A primary of the kind that {@linkcode recordedContext} names. */
export function gadget(name: string): KubernetesObject {
  return {
    apiVersion: "example.com/v1",
    kind: "Gadget",
    metadata: { namespace: "default", name, uid: `uid-${name}` },
  };
}
