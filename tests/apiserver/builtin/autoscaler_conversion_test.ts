import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { UntypedObject } from "@coracle/operator/client";
import { convertAutoscaler } from "../../../dev/apiserver/builtin/autoscaler_conversion.ts";

/** HorizontalPodAutoscaler as returned by Kubernetes 1.32 in both versions. */
interface RecordedAutoscaler {
  readonly v1: UntypedObject;
  readonly v2: UntypedObject;
}

const recorded = readFileSync(
  new URL("./tables/autoscalers.ndjson", import.meta.url),
  "utf8",
).trimEnd().split("\n").map((line): RecordedAutoscaler => JSON.parse(line));

for (const { v1, v2 } of recorded) {
  test(`convertAutoscaler converts ${v2.metadata.name} to v1 as recorded`, () => {
    const converted = convertAutoscaler(v2, "autoscaling/v1");
    assert.deepEqual(withoutZeroCounts(converted), withoutZeroCounts(v1));
  });
}

test("convertAutoscaler restores v2 fields from the annotations of v1", () => {
  const [{ v2 } = assert.fail()] = recorded;
  const back = convertAutoscaler(
    convertAutoscaler(v2, "autoscaling/v1"),
    "autoscaling/v2",
  ) as UntypedObject & {
    readonly spec: { readonly metrics: readonly unknown[] };
    readonly status: unknown;
  };
  const { spec } = v2 as typeof back;
  const { metrics, ...rest } = spec;
  const { metrics: backMetrics, ...backRest } = back.spec;
  assert.deepEqual(backRest, rest);
  assert.equal(backMetrics.length, metrics.length);
  assert.deepEqual(backMetrics.at(-1), metrics[0]);
  assert.deepEqual(back.metadata, v2.metadata);
});

test("convertAutoscaler defaults to a CPU utilization of 80 %", () => {
  const autoscaler = {
    apiVersion: "autoscaling/v1",
    kind: "HorizontalPodAutoscaler",
    metadata: {
      name: "web",
      annotations: {
        "autoscaling.alpha.kubernetes.io/behavior": "not JSON",
        own: "stays",
      },
    },
    spec: {
      maxReplicas: 3,
      scaleTargetRef: { kind: "Deployment", name: "web" },
    },
  } as UntypedObject;
  assert.deepEqual(convertAutoscaler(autoscaler, "autoscaling/v2"), {
    ...autoscaler,
    apiVersion: "autoscaling/v2",
    metadata: { name: "web", annotations: { own: "stays" } },
    spec: {
      maxReplicas: 3,
      scaleTargetRef: { kind: "Deployment", name: "web" },
      metrics: [{
        type: "Resource",
        resource: {
          name: "cpu",
          target: { type: "Utilization", averageUtilization: 80 },
        },
      }],
    },
    status: {},
  });
});

/** Object without zero counts, which only some versions contain. */
function withoutZeroCounts(object: UntypedObject): unknown {
  return JSON.parse(
    JSON.stringify(
      object,
      (key, value) => value === 0 && /Replicas$/.test(key) ? undefined : value,
    ),
  );
}
