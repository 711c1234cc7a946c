import assert from "node:assert/strict";
import type { Client } from "@coracle/operator/client";
import { crdManifest } from "@coracle/operator/crd";
import {
  ConfigMap,
  Deployment,
  type KubernetesObject,
  PersistentVolume,
  PersistentVolumeClaim,
} from "@coracle/operator/kinds";
import {
  applySet,
  ApplySetError,
  diffSet,
  pruneSet,
  waitFor,
} from "@coracle/operator/workflows";
import { until } from "../../support/until.ts";
import { Release } from "../../support/release_kind.ts";
import {
  applyTest,
  configMap,
  deployment,
  GROUP,
  OWNER,
  secret,
  told,
} from "./apply_case.ts";

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
      /^Cannot apply Deployment\/default\/web: .*immutable.*; the option "force", or/s,
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

applyTest(
  "An annotation of the present object forces its replacement",
  async ({ client }) => {
    const forced = deployment("one");
    forced.metadata.annotations = { [`${GROUP}/force`]: "enabled" };
    await applySet(client, [forced], { owner: OWNER });
    const { changes } = await applySet(client, [deployment("two")], {
      owner: OWNER,
    });
    assert.deepEqual(told(changes), ["Deployment/web created"]);
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

const STORAGE = [
  [PersistentVolume, undefined, (path: string) => ({
    capacity: { storage: "1Gi" },
    hostPath: { path },
  })],
  [PersistentVolumeClaim, "default", (volumeName: string) => ({
    resources: { requests: { storage: "1Gi" } },
    volumeName,
  })],
] as const;
for (const [kind, namespace, fields] of STORAGE) {
  applyTest(
    `A ${kind.kind} is not deleted for a field that cannot change`,
    async ({ client }) => {
      const key = { name: "data", namespace };
      const holder = (data: string) => ({
        apiVersion: "v1",
        kind: kind.kind,
        metadata: key,
        spec: {
          accessModes: ["ReadWriteOnce"],
          storageClassName: "",
          ...fields(data),
        },
      });
      const options = { owner: OWNER, force: true };
      await applySet(client, [holder("one")], options);
      const { metadata } = await client.get<KubernetesObject>(kind, key);
      await assert.rejects(
        applySet(client, [holder("two")], options),
        /immutable/,
      );
      const after = await client.get<KubernetesObject>(kind, key);
      assert.equal(after.metadata.uid, metadata.uid);
      assert.equal(after.metadata.deletionTimestamp, undefined);
    },
  );
}

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
      /^Cannot apply Secret\/default\/login: the server refused it: [A-Z]\w+$/,
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
    // The second time it is there already, and unchanged.
    for (const action of ["created", "unchanged"]) {
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
      assert.deepEqual(
        failure.changes.map((change) => change.action),
        [action, action],
      );
      assert.equal(
        await client.find(ConfigMap, { namespace: "default", name: "a" }),
        undefined,
      );
    }
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

/** Client that replaces an object after each answer of `verb`. */
function racing(
  client: Client,
  { verb, replace }: {
    readonly verb: "find" | "apply";
    readonly replace: () => Promise<unknown>;
  },
): Client {
  const after = async (work: Promise<unknown>) => {
    try {
      return await work;
    } finally {
      await replace();
    }
  };
  const bound = (name: "find" | "apply" | "delete") => (...args: unknown[]) => {
    const call = client[name] as (...args: unknown[]) => unknown;
    const work = call.apply(client, args) as Promise<unknown>;
    return name === verb ? after(work) : work;
  };
  return {
    find: bound("find"),
    apply: bound("apply"),
    delete: bound("delete"),
  } as unknown as Client;
}

applyTest(
  "pruneSet does not delete an object that was replaced after it was read",
  async ({ client }) => {
    const { inventory } = await applySet(client, [configMap("a")], {
      owner: OWNER,
    });
    const key = { namespace: "default", name: "a" };
    const replace = async () => {
      await client.delete(ConfigMap, key);
      await client.create(ConfigMap, { metadata: key, data: { of: "others" } });
    };
    const failure = await pruneSet(
      racing(client, { verb: "find", replace }),
      inventory,
      { owner: OWNER },
    ).catch((error: unknown) => error);
    assert(failure instanceof ApplySetError, String(failure));
    assert.equal(failure.reference?.name, "a");
    const { data } = await client.get(ConfigMap, key);
    assert.deepEqual(data, { of: "others" });
  },
);

applyTest(
  "A forced set does not delete an object that was replaced after it was read",
  async ({ client }) => {
    await applySet(client, [deployment("one")], { owner: OWNER });
    const key = { namespace: "default", name: "web" };
    let uid: string | undefined;
    const replace = async () => {
      await client.delete(Deployment, key);
      const theirs = deployment("theirs") as Deployment;
      uid = (await client.create(Deployment, theirs)).metadata.uid;
    };
    const failure = await applySet(
      racing(client, { verb: "apply", replace }),
      [deployment("two")],
      { owner: OWNER, force: true },
    ).catch((error: unknown) => error);
    assert(failure instanceof ApplySetError, String(failure));
    const stored = await client.get(Deployment, key);
    assert.equal(stored.metadata.uid, uid);
  },
);

applyTest(
  "A forced set waits until the finalizers of the old object are gone",
  async ({ client, writes }) => {
    const held = deployment("one");
    held.metadata.finalizers = ["example.com/hold"];
    await applySet(client, [held], { owner: OWNER });
    const key = { namespace: "default", name: "web" };
    const { uid } = (await client.get(Deployment, key)).metadata;
    writes.length = 0;
    const work = applySet(client, [deployment("two")], {
      owner: OWNER,
      force: true,
    });
    await until(
      "the deletion",
      () => writes.some(({ verb }) => verb === "delete"),
    );
    await client.patch(Deployment, key, { metadata: { finalizers: [] } });
    assert.deepEqual(told((await work).changes), ["Deployment/web created"]);
    const stored = await client.get(Deployment, key);
    assert.notEqual(stored.metadata.uid, uid);
  },
);

applyTest(
  "An owner in a namespace whose name is no label is refused",
  async ({ client }) => {
    const owner = { ...OWNER, namespace: "x".repeat(64) };
    await assert.rejects(
      applySet(client, [configMap("a")], { owner }),
      /Cannot label the objects of a set/,
    );
  },
);

applyTest(
  "The labels of a set go before those of its objects",
  async ({ client }) => {
    const object = configMap("a");
    object.metadata.labels = { [`${GROUP}/name`]: "other", app: "web" };
    await applySet(client, [object], { owner: OWNER });
    const key = { namespace: "default", name: "a" };
    const { labels } = (await client.get(ConfigMap, key)).metadata;
    assert.partialDeepStrictEqual(labels, {
      [`${GROUP}/name`]: "shop",
      app: "web",
    });
  },
);

applyTest(
  "A forced set replaces no object for another error than a fixed field",
  async ({ client }) => {
    await applySet(client, [configMap("a")], { owner: OWNER });
    const key = { namespace: "default", name: "a" };
    const { uid } = (await client.get(ConfigMap, key)).metadata;
    const bad = configMap("a", { "not a key!": "x" });
    await assert.rejects(
      applySet(client, [bad], { owner: OWNER, force: true }),
      ApplySetError,
    );
    assert.equal((await client.get(ConfigMap, key)).metadata.uid, uid);
  },
);

applyTest(
  "diffSet fails for what a server refuses, and ends with its signal",
  async ({ client }) => {
    const bad = configMap("a", { "not a key!": "x" });
    const failure = await diffSet(client, [bad], { owner: OWNER })
      .catch((error: unknown) => error);
    assert(failure instanceof ApplySetError, String(failure));
    assert.equal(failure.reference?.name, "a");
    const reason = new Error("stopped by the test");
    await assert.rejects(
      diffSet(client, [configMap("a")], {
        owner: OWNER,
        signal: AbortSignal.abort(reason),
      }),
      reason,
    );
  },
);

applyTest(
  "pruneSet counts what another has deleted at the same time as deleted",
  async ({ client }) => {
    const { inventory } = await applySet(client, [configMap("a")], {
      owner: OWNER,
    });
    const key = { namespace: "default", name: "a" };
    const replace = () => client.delete(ConfigMap, key);
    const racer = racing(client, { verb: "find", replace });
    const changes = await pruneSet(racer, inventory, { owner: OWNER });
    assert.deepEqual(told(changes), ["ConfigMap/a deleted"]);
  },
);

applyTest(
  "A set waits for a stage that is in progress, until its signal fires",
  async ({ client }) => {
    const stop = new AbortController();
    const reason = new Error("stopped by the test");
    let asked = 0;
    const rules = new Map([["/Namespace", () => {
      if (++asked === 2) stop.abort(reason);
      return { status: "InProgress", reason: "Test", message: "" } as const;
    }]]);
    const shop = {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "shop" },
    };
    const options = { owner: OWNER, rules, signal: stop.signal };
    await assert.rejects(
      applySet(client, [shop, configMap("a")], options),
      reason,
    );
    assert.equal(asked, 2);
    const key = { namespace: "default", name: "a" };
    assert.equal(await client.find(ConfigMap, key), undefined);
  },
);
