import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { loadCel } from "../../../apiserver/crd/cel/cel_library.ts";
import { createCauses } from "../../../apiserver/crd/definition_rules/crd_rules.ts";
import { ApiServer } from "../../../apiserver/server.ts";
import type { ObjectOf } from "../../../core/api/kind.ts";
import type { UntypedObject } from "../../../core/api/object.ts";
import { crdManifest } from "../../../core/crd/crd_manifest.ts";
import { defineKind } from "../../../core/crd/define_kind.ts";
import { installCrd } from "../../../core/crd/install_crd.ts";
import {
  type JobTemplateSpec,
  type PodTemplateSpec,
  schemaOf,
  type TypeName,
} from "../../../core/kinds/mod.ts";
import { typeSchemas } from "../../../core/kinds/type_schemas.ts";

/** Greatest size of a definition with one type, of the 1.5 MB that etcd takes. */
const LIMIT_BYTES = 256 * 1024;

const NAMES = Object.keys(JSON.parse(typeSchemas())) as TypeName[];

/** A kind with a field and a list of a type. */
function kindWith(name: TypeName) {
  const field = z.unknown().meta(schemaOf(name));
  return defineKind({
    group: "sample.coracle.dev",
    version: "v1",
    kind: "Holder",
    spec: z.object({ field, list: z.array(field) }),
  });
}

test("schemaOf() gives schemas of all types that a definition may contain", async () => {
  await loadCel();
  assert(NAMES.length > 400, `only ${NAMES.length} types`);
  for (const name of NAMES) {
    const manifest = crdManifest(kindWith(name));
    const status = { storedVersions: ["v1"] };
    const causes = createCauses({ ...manifest, status } as UntypedObject);
    assert.deepEqual(causes, [], name);
    const text = JSON.stringify(manifest);
    assert(text.length < LIMIT_BYTES, `${name}: ${text.length} bytes`);
    assert.doesNotMatch(text, /"(?:\$ref|description)":"/, name);
  }
});

test("schemaOf() gives quantities, ports and times as they may be written", () => {
  assert.deepEqual(schemaOf("Time"), { type: "string", format: "date-time" });
  assert.deepEqual(schemaOf("IntOrString"), {
    "x-kubernetes-int-or-string": true,
  });
  const { pattern, ...rest } = schemaOf("Quantity");
  assert.deepEqual(rest, { "x-kubernetes-int-or-string": true });
  const regexp = new RegExp(String(pattern));
  for (const quantity of ["1", "100m", "1.5Gi", "-2e3", ".5", "1E", "3E-2"]) {
    assert.match(quantity, regexp);
  }
  for (const text of ["", "1GiB", "m", "1 Gi", "e3"]) {
    assert.doesNotMatch(text, regexp);
  }
});

test("schemaOf() keeps unknown fields where a type contains itself", () => {
  const { properties } = schemaOf("JSONSchemaProps") as {
    properties: Record<string, unknown>;
  };
  assert.deepEqual(properties["not"], {
    "x-kubernetes-preserve-unknown-fields": true,
  });
});

test("schemaOf() names the type that is nearest to an unknown one", () => {
  assert.throws(() => schemaOf("PodTemplatSpec" as TypeName), {
    name: "RangeError",
    message:
      'Cannot find the schema of a type: @coracle/operator/kinds has no such type, did you mean "PodTemplateSpec"?: received "PodTemplatSpec"',
  });
  assert.throws(() => schemaOf("toString" as TypeName), RangeError);
});

const Batch = defineKind({
  group: "sample.coracle.dev",
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

test("The API server validates fields of a built-in type", async () => {
  const { client, stop } = await startServer();
  try {
    await installCrd(client, Batch);
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
    await stop();
  }
});

/** A server without a socket. */
async function startServer() {
  const server = await ApiServer.start({ port: false });
  return { client: server.client, stop: () => server.stop() };
}
