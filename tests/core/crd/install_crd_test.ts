import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { VirtualClock } from "@coracle/dev";
import { ApiServer } from "@coracle/dev/apiserver";
import { ApiError, type Client, silentLogger } from "@coracle/operator/client";
import { crdManifest, defineKind, installCrd } from "@coracle/operator/crd";
import { CRD_KIND, crdCondition } from "../../../core/crd/crd_object.ts";

const Lamp = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Lamp",
  spec: z.object({ watts: z.int().max(60).default(5) }),
});
const key = { name: "lamps.sample.coracle.dev" };

/** A server without a socket, stopped when the test ends. */
async function withServer(
  run: (server: ApiServer) => Promise<void>,
): Promise<void> {
  const server = await ApiServer.start({
    port: false,
    establishingDelay: 10,
  });
  try {
    await run(server);
  } finally {
    await server.stop();
  }
}

test("installCrd() waits until the server serves the kind", async () => {
  await withServer(async ({ client }) => {
    await installCrd(client, Lamp);
    const crd = await client.get(CRD_KIND, key);
    assert.equal(crdCondition(crd, "Established")?.status, "True");
    const lamp = await client.create(Lamp, {
      metadata: { name: "a", namespace: "default" },
      spec: {},
    });
    assert.equal(lamp.spec.watts, 5);
    await assert.rejects(
      client.create(Lamp, {
        metadata: { name: "b", namespace: "default" },
        spec: { watts: 100 },
      }),
      /spec\.watts in body should be less than or equal to 60/,
    );
  });
});

test("installCrd() changes nothing when it is repeated", async () => {
  await withServer(async ({ client }) => {
    await installCrd(client, Lamp, { fieldManager: "one" });
    const before = await client.get(CRD_KIND, key);
    await installCrd(client, Lamp, { fieldManager: "one" });
    const after = await client.get(CRD_KIND, key);
    assert.equal(
      after.metadata.resourceVersion,
      before.metadata.resourceVersion,
    );
  });
});

test("installCrd() takes over fields that another manager applied", async () => {
  await withServer(async ({ client }) => {
    const other = defineKind({
      group: "sample.coracle.dev",
      version: "v1",
      kind: "Lamp",
      spec: z.object({ colour: z.string() }),
    });
    const warnings: unknown[] = [];
    const warn = (...line: unknown[]) => void warnings.push(line);
    const logger = { ...silentLogger, warn };
    await installCrd(client, other, { fieldManager: "kubectl", logger });
    assert.deepEqual(warnings, []);
    for (let start = 0; start < 2; start++) {
      await installCrd(client, Lamp, { fieldManager: "operator", logger });
    }
    assert.deepEqual(warnings, [[
      "Replacing a CustomResourceDefinition of another author",
      {
        definition: key.name,
        conflicts: [{
          reason: "FieldManagerConflict",
          message: 'conflict with "kubectl"',
          field: ".spec.versions",
        }],
      },
    ]]);
    const crd = await client.get(CRD_KIND, key);
    const [version] = crd.spec.versions;
    const { spec } = version?.schema.openAPIV3Schema.properties ?? {};
    assert.deepEqual(Object.keys(spec?.properties ?? {}), ["watts"]);
  });
});

test("installCrd() fails where a version that stores objects would go", async () => {
  await withServer(async ({ client }) => {
    await installCrd(client, Lamp);
    const next = defineKind({
      group: "sample.coracle.dev",
      version: "v2",
      kind: "Lamp",
      spec: z.object({}),
    });
    await assert.rejects(
      installCrd(client, next, { fieldManager: "operator" }),
      /"v1": missing from spec.versions; v1 was previously a storage version/,
    );
  });
});

test("installCrd() leaves a definition to the manager that applied the same", async () => {
  await withServer(async ({ client }) => {
    const managers = async () => {
      const { metadata } = await client.get(CRD_KIND, key);
      return metadata.managedFields?.filter(({ operation }) =>
        operation === "Apply"
      ).map(({ manager }) => manager);
    };
    await installCrd(client, Lamp, { fieldManager: "helm" });
    await installCrd(client, Lamp, { fieldManager: "operator" });
    assert.deepEqual(await managers(), ["helm"]);

    // A shared field could be changed by none of the two alone.
    const bright = defineKind({
      group: "sample.coracle.dev",
      version: "v1",
      kind: "Lamp",
      spec: z.object({ watts: z.int().max(90).default(5) }),
    });
    await client.apply(CRD_KIND, crdManifest(bright) as never, {
      fieldManager: "helm",
    });
    await installCrd(client, bright, { fieldManager: "operator" });
    assert.deepEqual(await managers(), ["helm"]);
  });
});

test("installCrd() rejects a change of the scope", async () => {
  await withServer(async ({ client }) => {
    await installCrd(client, Lamp);
    const cluster = defineKind({
      group: "sample.coracle.dev",
      version: "v1",
      kind: "Lamp",
      scope: "Cluster",
      spec: z.object({}),
    });
    await assert.rejects(
      installCrd(client, cluster),
      /its scope is Namespaced on the server and cannot change.*received Cluster/,
    );
  });
});

test("installCrd() reports a conflict of names immediately", async () => {
  await withServer(async ({ client }) => {
    await installCrd(client, Lamp);
    const Torch = defineKind({
      group: "sample.coracle.dev",
      version: "v1",
      kind: "Torch",
      shortNames: ["lamp"],
      spec: z.object({}),
    });
    await assert.rejects(
      installCrd(client, Torch),
      /its names are taken: received ShortNamesConflict: "lamp" is already in use/,
    );
  });
});

test("installCrd() fails at its time limit and reports its progress", async () => {
  const clock = new VirtualClock();
  const options = { port: false, clock, establishingDelay: 60_000 } as const;
  const server = await ApiServer.start(options);
  try {
    const failed = assert.rejects(
      installCrd(server.client, Lamp, { clock, timeout: "5s" }),
      /the server did not serve it within 5000 ms: received conditions NamesAccepted=True, Established=False/,
    );
    await clock.advance(6_000);
    await failed;
  } finally {
    await server.stop();
  }
});

test("installCrd() reads the definition again when the watch breaks", async () => {
  await withServer(async ({ client, faults }) => {
    const effect = { reset: "request" } as const;
    faults.add({ verb: "watch", effect, count: 1 });
    await installCrd(client, Lamp);
    const crd = await client.get(CRD_KIND, key);
    assert.equal(crdCondition(crd, "Established")?.status, "True");
  });
});

/** Calls a function before the API discovery answers a question about lamps. */
function beforeDiscovery(client: Client, ask: (version: string) => void): void {
  const resolve = client.resolve.bind(client);
  client.resolve = (kind) => {
    if (kind.kind === "Lamp") ask(kind.version);
    return resolve(kind);
  };
}

test("installCrd() waits until discovery lists the served versions", async () => {
  const lamps = defineKind({
    group: "sample.coracle.dev",
    version: "v2",
    kind: "Lamp",
    spec: z.object({}),
    versions: [
      { name: "v1", spec: z.object({}) },
      { name: "v1alpha1", spec: z.object({}), served: false },
    ],
  });
  await withServer(async ({ client }) => {
    const asked: string[] = [];
    beforeDiscovery(client, (version) => {
      asked.push(version);
      if (asked.length > 3) return;
      const notFound = { status: 404, reason: "NotFound" };
      throw new ApiError("Cannot find kind", notFound);
    });
    await installCrd(client, lamps);
    assert.deepEqual(asked, ["v2", "v2", "v2", "v2", "v1"]);
  });
});

test("installCrd() ends when discovery fails", async () => {
  await withServer(async ({ client }) => {
    beforeDiscovery(client, () => {
      throw new Error("As asked");
    });
    await assert.rejects(installCrd(client, Lamp), /As asked/);
  });
});

test("installCrd() ends when its signal aborts", async () => {
  await withServer(async ({ client }) => {
    await assert.rejects(
      installCrd(client, Lamp, { signal: AbortSignal.abort() }),
      /the signal was aborted/,
    );
  });
});

test("installCrd() applies changed labels and annotations of a kind", async () => {
  await withServer(async ({ client }) => {
    const names = { group: "sample.coracle.dev", version: "v1", kind: "Lamp" };
    for (const part of ["labels", "annotations"] as const) {
      for (const value of ["one", "two"]) {
        const lamps = defineKind({
          ...names,
          spec: z.object({}),
          [part]: { team: value },
        });
        await installCrd(client, lamps);
        const { metadata } = await client.get(CRD_KIND, key);
        assert.equal(metadata[part]?.["team"], value);
      }
    }
  });
});

test("installCrd() ends when the definition is deleted while it waits", async () => {
  const clock = new VirtualClock();
  const options = { port: false, clock, establishingDelay: 60_000 } as const;
  const server = await ApiServer.start(options);
  try {
    const failed = assert.rejects(
      installCrd(server.client, Lamp, { clock, timeout: "1h" }),
      /^Error: Cannot install lamps\.sample\.coracle\.dev: it was deleted$/,
    );
    await clock.advance(1_000);
    await server.client.delete(CRD_KIND, key);
    await clock.advance(1_000);
    await failed;
  } finally {
    await server.stop();
  }
});

test("installCrd() warns of a definition that is being deleted", async () => {
  await withServer(async ({ client }) => {
    await installCrd(client, Lamp);
    const lamp = { namespace: "default", name: "a" };
    await client.create(Lamp, {
      metadata: { ...lamp, finalizers: ["sample.coracle.dev/lamp"] },
      spec: {},
    });
    await client.delete(CRD_KIND, key);
    const warnings: unknown[] = [];
    const warn = (...line: unknown[]) => void warnings.push(line);
    await installCrd(client, Lamp, { logger: { ...silentLogger, warn } });
    assert.deepEqual(warnings, [[
      "A CustomResourceDefinition is being deleted: its kind is not served once it is gone, until it is installed again",
      { definition: key.name },
    ]]);
    // Who installs it can still clean up the object that holds it.
    await client.patch(Lamp, lamp, { metadata: { finalizers: null } });
  });
});
