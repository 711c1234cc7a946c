import assert from "node:assert/strict";
import { ApiError } from "@coracle/operator/client";
import { crdManifest } from "@coracle/operator/crd";
import {
  ConfigMap,
  type KubernetesObject,
  Secret,
  Service,
} from "@coracle/operator/kinds";
import { applySet, diffSet, pruneSet } from "@coracle/operator/workflows";
import { Release } from "../../support/release_kind.ts";
import {
  applyTest,
  configMap,
  GROUP,
  OWNER,
  secret,
  told,
} from "./apply_case.ts";

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
  "A set waits until discovery lists the kinds of its definitions",
  async ({ client }) => {
    const resolve = client.resolve.bind(client);
    let asked = 0;
    // A Kubernetes API server lags behind the condition Established.
    client.resolve = (kind) => {
      if (kind.kind === "Release" && ++asked <= 3) {
        const notFound = { status: 404, reason: "NotFound" };
        throw new ApiError("Cannot find kind", notFound);
      }
      return resolve(kind);
    };
    const release = {
      apiVersion: "sample.coracle.dev/v1",
      kind: "Release",
      metadata: { namespace: "default", name: "web" },
      spec: { version: "1" },
    };
    const objects = [
      crdManifest(Release) as unknown as KubernetesObject,
      release,
    ];
    const { changes } = await applySet(client, objects, { owner: OWNER });
    assert.deepEqual(told(changes), [
      "CustomResourceDefinition/releases.sample.coracle.dev created",
      "Release/web created",
    ]);
    assert.ok(asked > 3);
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
    assert.deepEqual(told(changes), [
      "ConfigMap/a configured",
      "ConfigMap/b unchanged",
    ]);
    assert.deepEqual(changes[0]?.fields, [
      { path: "/data/color", before: "red", after: "blue" },
    ]);
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
      configMap("ignored"),
    ], { owner: OWNER });
    await client.patch(ConfigMap, { namespace: "default", name: "ignored" }, {
      metadata: { annotations: { [`${GROUP}/apply`]: "Ignore" } },
    });
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
      "ConfigMap/ignored skipped",
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
  "pruneSet sends no request for an object that is being deleted",
  async ({ client, writes }) => {
    const { inventory } = await applySet(client, [configMap("a")], {
      owner: OWNER,
    });
    const key = { namespace: "default", name: "a" };
    await client.patch(ConfigMap, key, {
      metadata: { finalizers: ["example.com/held"] },
    });
    await client.delete(ConfigMap, key);
    writes.length = 0;
    const changes = await pruneSet(client, inventory, { owner: OWNER });
    assert.deepEqual(told(changes), ["ConfigMap/a deleted"]);
    assert.deepEqual(writes, []);
  },
);

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
    assert.deepEqual(told(changes), [
      "ConfigMap/new created",
      "Secret/login configured",
      "Release/web unknown",
      "ConfigMap/a deleted",
    ]);
    assert.deepEqual(changes[1]?.fields, [
      { path: "/data/password", before: "*** (before)", after: "*** (after)" },
    ]);
    assert.equal(
      (await client.get(Secret, { namespace: "default", name: "login" })).data
        ?.["password"],
      "b2xk",
    );
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
    const left = (value: string) => configMap("left", { value });
    const first = await applySet(client, [ignored, left("1"), once("1")], {
      owner: OWNER,
    });
    assert.deepEqual(told(first.changes), [
      "ConfigMap/ignored skipped",
      "ConfigMap/left created",
      "ConfigMap/once created",
    ]);
    await client.patch(ConfigMap, { namespace: "default", name: "left" }, {
      metadata: { annotations: { [`${GROUP}/apply`]: "Ignore" } },
    });
    const second = await applySet(client, [ignored, left("2"), once("2")], {
      owner: OWNER,
    });
    assert.deepEqual(told(second.changes), [
      "ConfigMap/ignored skipped",
      "ConfigMap/left skipped",
      "ConfigMap/once skipped",
    ]);
    for (const name of ["left", "once"]) {
      const key = { namespace: "default", name };
      assert.deepEqual((await client.get(ConfigMap, key)).data, { value: "1" });
    }
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

applyTest(
  "A set keeps objects whose version changed, and those of owners of one name",
  async ({ client }) => {
    const set = [configMap("a")];
    await applySet(client, set, { owner: OWNER });
    const theirs = configMap("theirs");
    const namespace = "elsewhere";
    await applySet(client, [theirs], { owner: { ...OWNER, namespace } });
    const reference = { apiVersion: "v2", kind: "ConfigMap" };
    const { changes } = await applySet(client, set, {
      owner: OWNER,
      previous: [
        { ...reference, namespace: "default", name: "a" },
        { ...reference, apiVersion: "v1", ...theirs.metadata },
      ],
    });
    assert.deepEqual(told(changes), [
      "ConfigMap/a unchanged",
      "ConfigMap/theirs skipped",
    ]);
  },
);

applyTest("A set is applied as the given field manager", async ({ client }) => {
  const owner = OWNER;
  await applySet(client, [configMap("one")], { owner, fieldManager: "shops" });
  const { metadata } = await client.get(ConfigMap, {
    namespace: "default",
    name: "one",
  });
  const managers = metadata.managedFields?.map(({ manager }) => manager);
  assert.deepEqual(managers, ["shops"]);
});

applyTest(
  "An object that left a set is pruned, although another kind keeps its name",
  async ({ client }) => {
    const login = secret({ password: "c2VjcmV0" });
    const first = await applySet(client, [login, configMap("login")], {
      owner: OWNER,
    });
    const { changes } = await applySet(client, [configMap("login")], {
      owner: OWNER,
      previous: first.inventory,
    });
    assert.deepEqual(told(changes), [
      "ConfigMap/login unchanged",
      "Secret/login deleted",
    ]);
  },
);

applyTest(
  "Dry runs of a set take place one at a time by default",
  async ({ client }) => {
    let running = 0;
    let most = 0;
    const find = client.find.bind(client);
    client.find = (async (...given: Parameters<typeof find>) => {
      most = Math.max(most, ++running);
      try {
        return await find(...given);
      } finally {
        running--;
      }
    }) as typeof client.find;
    const objects = ["a", "b", "c", "d"].map((name) => configMap(name));
    for (const concurrency of [undefined, 3]) {
      most = 0;
      await applySet(client, objects, { owner: OWNER, concurrency });
      assert.equal(most, concurrency ?? 1);
    }
  },
);
