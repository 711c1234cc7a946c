import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { UntypedObject } from "../../../core/api/object.ts";
import { convertAutoscaler } from "../../../apiserver/builtin/autoscaler_conversion.ts";

/** One autoscaler as a Kubernetes 1.32 server showed it in both versions. */
interface RecordedAutoscaler {
  readonly v1: UntypedObject;
  readonly v2: UntypedObject;
}

const recorded = readFileSync(
  new URL("./tables/autoscalers.ndjson", import.meta.url),
  "utf8",
).trimEnd().split("\n").map((line): RecordedAutoscaler => JSON.parse(line));

for (const { v1, v2 } of recorded) {
  test(`convertAutoscaler shows ${v2.metadata.name} in autoscaling/v1 as a real server does`, () => {
    const converted = convertAutoscaler(v2, "autoscaling/v1");
    assert.deepEqual(withoutZeroCounts(converted), withoutZeroCounts(v1));
  });
}

test("convertAutoscaler brings back from autoscaling/v1 what it kept there", () => {
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

test("convertAutoscaler wants 80 % of the CPU where nothing is wanted", () => {
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

/** An object without counts of zero, which some versions always show. */
function withoutZeroCounts(object: UntypedObject): unknown {
  return JSON.parse(
    JSON.stringify(
      object,
      (key, value) => value === 0 && /Replicas$/.test(key) ? undefined : value,
    ),
  );
}
