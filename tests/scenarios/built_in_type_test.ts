import assert from "node:assert/strict";
import { z } from "zod";
import { type ObjectOf, systemClock } from "@coracle/operator/client";
import { defineKind, installCrd } from "@coracle/operator/crd";
import {
  type JobTemplateSpec,
  type PodTemplateSpec,
  schemaOf,
} from "@coracle/operator/kinds";
import { CRD_KIND } from "../../core/crd/crd_object.ts";
import { scenario } from "../support/operator_fixture.ts";
import { ON_REAL_CLUSTER } from "../support/scenario_cluster.ts";

const Batch = defineKind({
  group: "templates.sample.coracle.dev",
  version: "v1",
  kind: "Batch",
  spec: z.object({
    job: z.custom<JobTemplateSpec>().meta(schemaOf("JobTemplateSpec")),
    pod: z.custom<PodTemplateSpec>().meta(schemaOf("PodTemplateSpec"))
      .optional(),
  }),
});

const pod: PodTemplateSpec = {
  metadata: { labels: { app: "a" } },
  spec: {
    restartPolicy: "Never",
    containers: [{
      name: "main",
      image: "busybox",
      ports: [{ containerPort: 80 }],
      livenessProbe: { httpGet: { port: "http" } },
      resources: { requests: { cpu: "100m" } },
      env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "spec.a" } } }],
    }],
    volumes: [{ name: "v", emptyDir: {} }],
  },
};

scenario(
  "A server validates a field of a built-in type",
  async (fixture) => {
    const { client } = fixture;
    // A real cluster does not follow the clock of the test.
    const clock = ON_REAL_CLUSTER ? systemClock : fixture.clock;
    await fixture.done(installCrd(client, Batch, { clock }));
    try {
      const create = (name: string, spec: unknown) =>
        client.create(Batch, {
          metadata: { name, namespace: "default" },
          spec: spec as ObjectOf<typeof Batch>["spec"],
        });
      const { spec } = await create("a", {
        job: { spec: { template: pod, backoffLimit: 2 } },
        pod: { ...pod, speck: 1 },
      });
      const [container] = spec.job.spec.template.spec?.containers ?? [];
      assert.deepEqual(container?.ports, [{
        containerPort: 80,
        protocol: "TCP",
      }]);
      assert.deepEqual(spec.pod?.metadata, pod.metadata);
      assert.equal(Object.hasOwn(spec.pod ?? {}, "speck"), false);
      await assert.rejects(
        create("b", { job: { spec: { tmplate: {} } } }),
        /spec\.job\.spec\.template: Required value/,
      );
      await assert.rejects(
        create("c", { job: { spec: { template: pod, backoffLimit: "2" } } }),
        /spec\.job\.spec\.backoffLimit: Invalid value: "string"/,
      );
      await assert.rejects(
        create("d", {
          job: {
            spec: {
              template: {
                spec: {
                  containers: [{
                    name: "main",
                    resources: { requests: { cpu: "much" } },
                  }],
                },
              },
            },
          },
        }),
        /requests\.cpu: Invalid value: "much"/,
      );
    } finally {
      await client.delete(CRD_KIND, { name: `${Batch.plural}.${Batch.group}` });
    }
  },
);
