import { Buffer } from "node:buffer";
import type { ResolvedKind } from "@coracle/operator/kinds";
import { silentLogger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
import { memoryCluster } from "./memory_cluster.ts";

/** Kind of small objects. */
export const Widget: ResolvedKind = {
  group: "bench.coracle.dev",
  version: "v1",
  kind: "Widget",
  plural: "widgets",
  scope: "Namespaced",
};

/** List of small objects. */
function list(count: number): Buffer {
  const parts = Array.from({ length: count }, (_, i) =>
    JSON.stringify({
      metadata: {
        name: `widget-${i.toString(36)}`,
        namespace: `team-${i % 250}`,
        uid: `53f80bda-c36c-4e8d-999c-${String(i).padStart(12, "0")}`,
        resourceVersion: String(1_000 + i),
        generation: 1,
      },
    }));
  return Buffer.from(
    `{"kind":"WidgetList","apiVersion":"bench.coracle.dev/v1","metadata":{"resourceVersion":"9"},"items":[${
      parts.join(",")
    }]}`,
  );
}

/** Stream of changes that stays empty. */
const silence: AsyncIterable<Uint8Array> = {
  [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
};

/** Operator of a cluster in memory with a number of Widgets, which do not change. */
export function widgetOperator(count: number): Operator {
  return new Operator({
    client: memoryCluster({
      kind: Widget,
      list: list(count),
      changes: silence,
    }),
    logger: silentLogger,
    reconnect: { watchList: false },
  });
}
