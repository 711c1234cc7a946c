import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubernetesObject } from "../../../core/api/object.ts";
import type { AuditEvent } from "../../../core/apiserver/request_handler.ts";
import { ApiServer } from "../../../core/apiserver/server.ts";
import type { Client } from "../../../core/client/client.ts";
import { crdManifest } from "../../../core/crd/crd_manifest.ts";
import { Deployment } from "../../../core/kinds/apps_v1.ts";
import { ConfigMap, Secret, Service } from "../../../core/kinds/core_v1.ts";
import { applySet, diffSet } from "../../../workflows/apply/apply_set.ts";
import {
  type AppliedChange,
  ApplySetError,
  changeSetText,
} from "../../../workflows/apply/change_set.ts";
import { pruneSet } from "../../../workflows/apply/prune_set.ts";
import type { SetOwner } from "../../../workflows/apply/set_options.ts";
import { waitFor } from "../../../workflows/kstatus/wait_for.ts";
import { Release } from "../../support/release_kind.ts";

const OWNER: SetOwner = {
  group: "sample.coracle.dev",
  name: "shop",
  namespace: "default",
};
const GROUP = OWNER.group;

function configMap(
  name: string,
  data: Record<string, string> = {},
  annotations: Record<string, string> = {},
): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { namespace: "default", name, annotations },
    data,
  } as KubernetesObject;
}

function secret(data: Record<string, unknown>): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "default", name: "login" },
    data,
  } as KubernetesObject;
}

function deployment(app: string): KubernetesObject {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { namespace: "default", name: "web" },
    spec: {
      selector: { matchLabels: { app } },
      template: {
        metadata: { labels: { app } },
        spec: { containers: [{ name: "main", image: "nginx" }] },
      },
    },
  } as KubernetesObject;
}

/** Changes as `Kind/name action`. */
function told(changes: readonly AppliedChange[]): string[] {
  return changes.map(({ reference, action }) =>
    `${reference.kind}/${reference.name} ${action}`
  );
}

interface Case {
  readonly client: Client;
  /** What was written, but for dry runs. */
  readonly writes: AuditEvent[];
  readonly server: ApiServer;
}

function applyTest(title: string, play: (one: Case) => Promise<void>): void {
  test(title, { timeout: 30_000 }, async () => {
    const writes: AuditEvent[] = [];
    const server = await ApiServer.start({
      port: false,
      audit: (event) => {
        const isWrite = /^(create|update|patch|delete)$/.test(event.verb);
        if (isWrite && !event.target.includes("dryRun")) writes.push(event);
      },
    });
    try {
      const { client } = server;
      await client.version();
      writes.length = 0;
      await play({ client, writes, server });
    } finally {
      await server.stop();
    }
  });
}

applyTest(
  "A set is applied in stages: its own kind and namespace first",
  async ({ client, writes }) => {
    const objects = [
      {
        apiVersion: "sample.coracle.dev/v1",
        kind: "Release",
        metadata: { namespace: "shop", name: "web" },
        spec: { version: "1" },
      },
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
      crdManifest(Release) as unknown as KubernetesObject,
    ];
    const { changes, inventory } = await applySet(client, objects, {
      owner: OWNER,
    });
    assert.deepEqual(told(changes), [
      "CustomResourceDefinition/releases.sample.coracle.dev created",
      "Namespace/shop created",
      "Release/web created",
    ]);
    assert.deepEqual(inventory.map(({ kind }) => kind), [
      "CustomResourceDefinition",
      "Namespace",
      "Release",
    ]);
    const stored = await client.get(Release, {
      namespace: "shop",
      name: "web",
    });
    assert.equal(stored.metadata.labels?.[`${GROUP}/name`], "shop");
    assert.equal(stored.metadata.labels?.[`${GROUP}/namespace`], "default");

    const before = writes.length;
    const again = await applySet(client, objects, { owner: OWNER });
    assert(again.changes.every(({ action }) => action === "unchanged"));
    assert.equal(
      writes.length,
      before,
      "nothing has drifted, nothing is written",
    );
  },
);

applyTest(
  "Drift is told by its fields and set right, whoever made it",
  async ({ client }) => {
    const set = [configMap("a", { color: "blue" }), configMap("b")];
    await applySet(client, set, { owner: OWNER });
    await client.patch(ConfigMap, { namespace: "default", name: "a" }, {
      data: { color: "red", more: "theirs" },
    });
    const { changes } = await applySet(client, set, { owner: OWNER });
    assert.equal(
      changeSetText(changes),
      `ConfigMap/default/a configured\n  /data/color: "red" -> "blue"\nConfigMap/default/b unchanged`,
    );
    const { data } = await client.get(ConfigMap, {
      namespace: "default",
      name: "a",
    });
    assert.deepEqual(data, { color: "blue", more: "theirs" });
  },
);

applyTest(
  "What left the set is deleted last and in reverse; what is not of the set stays",
  async ({ client, writes }) => {
    const first = await applySet(client, [
      configMap("stays"),
      configMap("goes"),
      secret({ a: "YQ==" }),
      configMap("kept", {}, { [`${GROUP}/prune`]: "disabled" }),
    ], { owner: OWNER });
    const theirs = { namespace: "default", name: "theirs" };
    await client.create(ConfigMap, { metadata: theirs });
    writes.length = 0;
    const second = await applySet(client, [configMap("stays")], {
      owner: OWNER,
      previous: [
        ...first.inventory,
        { apiVersion: "v1", kind: "ConfigMap", ...theirs },
        { apiVersion: "gone.example.com/v1", kind: "Gone", name: "x" },
      ],
    });
    assert.deepEqual(told(second.changes), [
      "ConfigMap/stays unchanged",
      "Gone/x deleted",
      "Secret/login deleted",
      "ConfigMap/theirs skipped",
      "ConfigMap/kept skipped",
      "ConfigMap/goes deleted",
    ]);
    assert.deepEqual(writes.map(({ verb }) => verb), ["delete", "delete"]);
    assert.notEqual(await client.find(ConfigMap, theirs), undefined);
  },
);

applyTest("A whole set is deleted by its inventory", async ({ client }) => {
  const { inventory } = await applySet(client, [
    configMap("a"),
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
  ], { owner: OWNER });
  const changes = await pruneSet(client, inventory, { owner: OWNER });
  assert.deepEqual(told(changes), [
    "ConfigMap/a deleted",
    "Namespace/shop deleted",
  ]);
});

applyTest(
  "diffSet writes nothing, and masks what Secrets hold",
  async ({ client, writes }) => {
    const set = [
      configMap("a", { color: "blue" }),
      secret({ password: "b2xk" }),
    ];
    const { inventory } = await applySet(client, set, { owner: OWNER });
    writes.length = 0;
    const changes = await diffSet(client, [
      configMap("new"),
      secret({ password: "c2VjcmV0" }),
      {
        apiVersion: "sample.coracle.dev/v1",
        kind: "Release",
        metadata: { namespace: "default", name: "web" },
      },
    ], { owner: OWNER, previous: inventory });
    // Whether a deletion is meant stands in its body.
    assert.deepEqual(writes.map(({ verb }) => verb), ["delete"]);
    const a = { namespace: "default", name: "a" };
    assert.notEqual(await client.find(ConfigMap, a), undefined);
    assert.equal(
      changeSetText(changes),
      [
        "ConfigMap/default/new created",
        "Secret/default/login configured",
        `  /data/password: "*** (before)" -> "*** (after)"`,
        "Release/default/web unknown",
        "ConfigMap/default/a deleted",
      ].join("\n"),
    );
    assert.equal(
      (await client.get(Secret, { namespace: "default", name: "login" })).data
        ?.["password"],
      "b2xk",
    );
  },
);

applyTest(
  "A field that cannot change is an error, or with force a new object",
  async ({ client }) => {
    await applySet(client, [deployment("one")], { owner: OWNER });
    const { uid } =
      (await client.get(Deployment, { namespace: "default", name: "web" }))
        .metadata;
    const failure = await applySet(
      client,
      [configMap("a"), deployment("two")],
      { owner: OWNER },
    )
      .catch((error: unknown) => error);
    assert(failure instanceof ApplySetError, String(failure));
    assert.equal(failure.reference?.kind, "Deployment");
    assert.match(
      failure.message,
      /^Cannot apply Deployment\/default\/web: .*immutable/s,
    );
    assert.deepEqual(
      failure.changes,
      [],
      "the dry run has told before anything was written",
    );

    const { changes } = await applySet(client, [deployment("two")], {
      owner: OWNER,
      force: true,
    });
    assert.deepEqual(told(changes), ["Deployment/web created"]);
    const after = await client.get(Deployment, {
      namespace: "default",
      name: "web",
    });
    assert.notEqual(after.metadata.uid, uid);
  },
);

applyTest("An annotation forces a single object", async ({ client }) => {
  await applySet(client, [deployment("one")], { owner: OWNER });
  const forced = deployment("two");
  forced.metadata.annotations = { [`${GROUP}/force`]: "Enabled" };
  const { changes } = await applySet(client, [forced], { owner: OWNER });
  assert.deepEqual(told(changes), ["Deployment/web created"]);
});

applyTest(
  "What holds other objects is not made anew unless it says so itself",
  async ({ client }) => {
    const crd = (scope: "Namespaced" | "Cluster", annotations = {}) => {
      const { spec, ...manifest } = crdManifest(Release);
      const metadata = { ...manifest.metadata, annotations };
      return {
        ...manifest,
        metadata,
        spec: { ...spec, scope },
      } as unknown as KubernetesObject;
    };
    await applySet(client, [crd("Namespaced")], { owner: OWNER });
    await waitFor(client, [crd("Namespaced")]);
    const options = { owner: OWNER, force: true };
    await assert.rejects(
      applySet(client, [crd("Cluster")], options),
      /immutable/,
    );
    const forced = crd("Cluster", { [`${GROUP}/force`]: "enabled" });
    const { changes } = await applySet(client, [forced], options);
    assert.deepEqual(told(changes), [
      "CustomResourceDefinition/releases.sample.coracle.dev created",
    ]);
  },
);

applyTest(
  "An object as a server gave it can be applied again",
  async ({ client }) => {
    await applySet(client, [configMap("a", { a: "1" })], { owner: OWNER });
    const key = { namespace: "default", name: "a" };
    const stored = {
      ...await client.get(ConfigMap, key),
      apiVersion: "v1",
      kind: "ConfigMap",
    };
    const { changes } = await applySet(client, [stored], { owner: OWNER });
    assert.deepEqual(told(changes), ["ConfigMap/a unchanged"]);
  },
);

applyTest(
  "Objects that are to be left alone are skipped",
  async ({ client }) => {
    const ignored = configMap("ignored", { a: "1" }, {
      [`${GROUP}/apply`]: "Ignore",
    });
    const once = (value: string) =>
      configMap("once", { value }, { [`${GROUP}/apply`]: "IfNotPresent" });
    const first = await applySet(client, [ignored, once("1")], {
      owner: OWNER,
    });
    assert.deepEqual(told(first.changes), [
      "ConfigMap/ignored skipped",
      "ConfigMap/once created",
    ]);
    const second = await applySet(client, [ignored, once("2")], {
      owner: OWNER,
    });
    assert.deepEqual(told(second.changes), [
      "ConfigMap/ignored skipped",
      "ConfigMap/once skipped",
    ]);
    const { data } = await client.get(ConfigMap, {
      namespace: "default",
      name: "once",
    });
    assert.deepEqual(data, { value: "1" });
  },
);

applyTest(
  "An object that fails in the midst tells what was done before",
  async ({ client }) => {
    const bad = {
      ...configMap("bad"),
      data: { "not a key!": "x" },
    } as KubernetesObject;
    const failure = await applySet(client, [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
      configMap("a"),
      bad,
    ], { owner: OWNER }).catch((error: unknown) => error);
    assert(failure instanceof ApplySetError, String(failure));
    assert.deepEqual(told(failure.changes), ["Namespace/shop created"]);
    assert.equal(failure.reference?.name, "bad");
  },
);

applyTest(
  "What a server says of a Secret is not passed on",
  async ({ client }) => {
    const failure = await applySet(client, [
      secret({ password: "not base64 hunter2" }),
    ], { owner: OWNER })
      .catch((error: unknown) => error);
    assert(failure instanceof ApplySetError, String(failure));
    assert(!failure.message.includes("hunter2"), failure.message);
    assert.equal(failure.cause, undefined);
    assert.match(
      failure.message,
      /^Cannot apply Secret\/default\/login: the server refused it: received /,
    );
  },
);

applyTest(
  "A stage that does not become current stops the next",
  async ({ client }) => {
    const crd = crdManifest(Release) as unknown as KubernetesObject;
    const rules = new Map([["/Namespace", () => ({
      status: "Failed" as const,
      reason: "Test",
      message: "as told",
    })]]);
    const failure = await applySet(client, [
      crd,
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
      configMap("a"),
    ], { owner: OWNER, rules }).catch((error: unknown) => error);
    assert(failure instanceof ApplySetError, String(failure));
    assert.match(
      failure.message,
      /Cannot apply the set: .*Namespace\/shop status: 'Failed': as told/,
    );
    assert.equal(failure.changes.length, 2);
    assert.equal(
      await client.find(ConfigMap, { namespace: "default", name: "a" }),
      undefined,
    );
  },
);

applyTest(
  "An object that is there twice, or nameless, is refused before anything is sent",
  async ({ client, writes }) => {
    await assert.rejects(
      applySet(client, [configMap("a"), configMap("a")], { owner: OWNER }),
      /received ConfigMap\/default\/a twice/,
    );
    await assert.rejects(
      applySet(client, [{ metadata: { name: "a" } }], { owner: OWNER }),
      TypeError,
    );
    await assert.rejects(
      applySet(client, [configMap("a")], {
        owner: { ...OWNER, name: "x".repeat(64) },
      }),
      /Cannot label the objects of a set: .* of at most 63 characters/,
    );
    assert.equal(writes.length, 0);
  },
);

applyTest(
  "Many objects are compared at once where that is wanted",
  async ({ client }) => {
    const names = Array.from({ length: 20 }, (_, index) => `config-${index}`);
    const { changes } = await applySet(
      client,
      names.map((name) => configMap(name)),
      {
        owner: OWNER,
        concurrency: 8,
      },
    );
    assert.equal(changes.length, 20);
    assert(changes.every(({ action }) => action === "created"));
  },
);

applyTest(
  "A signal that fires ends the set with its reason",
  async ({ client }) => {
    const stop = new AbortController();
    const reason = new Error("stopped by the test");
    stop.abort(reason);
    await assert.rejects(
      applySet(client, [configMap("a")], { owner: OWNER, signal: stop.signal }),
      reason,
    );
  },
);

applyTest("A Service keeps what the server gave it", async ({ client }) => {
  const service = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace: "default", name: "web" },
    spec: { selector: { app: "web" }, ports: [{ port: 80 }] },
  } as KubernetesObject;
  await applySet(client, [service], { owner: OWNER });
  const { spec } = await client.get(Service, {
    namespace: "default",
    name: "web",
  });
  const { changes } = await applySet(client, [service], { owner: OWNER });
  assert.deepEqual(told(changes), ["Service/web unchanged"]);
  assert.equal(
    (await client.get(Service, { namespace: "default", name: "web" })).spec
      ?.clusterIP,
    spec?.clusterIP,
  );
});
