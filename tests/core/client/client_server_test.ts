import assert from "node:assert/strict";
import { after, test } from "node:test";
import { parse } from "yaml";
import { ApiServer } from "@coracle/dev/apiserver";
import {
  ApiError,
  Client,
  configFromText,
  Informer,
  loadConfig,
  silentLogger,
  untyped,
} from "@coracle/operator/client";
import { ConfigMap, Deployment, ServiceAccount } from "@coracle/operator/kinds";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";
import { until } from "../../support/until.ts";

const server = await ApiServer.start({ seed: 1 });
const client = new Client(await configFromText(server.kubeconfig));
after(async () => {
  await client.close();
  await server.stop();
});

const inDefault = (name: string) => ({ namespace: "default", name });

function failsWith(
  test: (error: ApiError) => boolean,
): (error: unknown) => boolean {
  return (error) => ApiError.is(error) && test(error);
}

test("Client creates, reads, updates and deletes objects", async () => {
  const key = inDefault("life");
  const made = await client.create(ConfigMap, {
    metadata: key,
    data: { a: "1" },
  });
  assert.equal(made.kind, "ConfigMap");
  await assert.rejects(
    () => client.create(ConfigMap, { metadata: key }),
    failsWith(({ isAlreadyExists }) => isAlreadyExists),
  );
  const merged = await client.patch(ConfigMap, key, { data: { b: "2" } });
  assert.deepEqual(merged.data, { a: "1", b: "2" });
  const patched = await client.patch(
    ConfigMap,
    key,
    [{ op: "remove", path: "/data/a" }],
    { type: "json" },
  );
  assert.deepEqual(patched.data, { b: "2" });
  const labelled = { metadata: { labels: { app: "web" } } };
  await client.patch(ConfigMap, key, labelled, { type: "strategic" });
  await assert.rejects(
    () => client.replace(ConfigMap, { ...made, data: {} }),
    failsWith(({ isConflict }) => isConflict),
  );
  const present = await client.get(ConfigMap, key);
  const replaced = await client.replace(ConfigMap, { ...present, data: {} });
  assert.equal(replaced.data, undefined);
  assert.equal(await client.delete(ConfigMap, key), undefined);
  assert.equal(await client.find(ConfigMap, key), undefined);
  await assert.rejects(
    () => client.delete(ConfigMap, key),
    /^ApiError: Cannot delete ConfigMap default\/life: configmaps "life" not found: received 404 NotFound$/,
  );
});

test("Client applies fields, and takes over conflicts only with force", async () => {
  const key = inDefault("applied");
  const mine = await client.apply(ConfigMap, {
    metadata: key,
    data: { a: "1" },
  });
  assert.equal(mine.metadata.managedFields?.[0]?.manager, "coracle");
  const theirs = { metadata: key, data: { a: "2" } };
  await assert.rejects(
    () => client.apply(ConfigMap, theirs, { fieldManager: "other" }),
    failsWith(({ details, isConflict }) =>
      isConflict && details.causes?.[0]?.field === ".data.a"
    ),
  );
  const options = { fieldManager: "other", force: true };
  const taken = await client.apply(ConfigMap, theirs, options);
  assert.deepEqual(taken.data, { a: "2" });
});

test("Client lists by selectors and pages, and deletes collections", async () => {
  for (const name of ["one", "two", "three", "four", "five"]) {
    await client.create(ConfigMap, {
      metadata: {
        namespace: "default",
        generateName: `${name}-`,
        labels: { set: "many", parity: name.length % 2 ? "odd" : "even" },
      },
    });
  }
  const selection = {
    namespace: "default",
    labelSelector: {
      matchLabels: { set: "many" },
      matchExpressions: [
        { key: "parity", operator: "In" as const, values: ["odd"] },
      ],
    },
  };
  assert.equal((await client.list(ConfigMap, selection)).items.length, 3);
  const names: string[] = [];
  const many = { namespace: "default", labelSelector: "set=many", limit: 2 };
  for await (const { metadata } of client.listAll(ConfigMap, many)) {
    names.push(metadata.name);
  }
  assert.equal(names.length, 5);
  const [name = ""] = names;
  const one = await client.list(ConfigMap, {
    fieldSelector: { "metadata.name": name },
  });
  assert.deepEqual(one.items.map(({ metadata }) => metadata.name), [name]);
  await client.deleteCollection(ConfigMap, selection);
  const rest = await client.list(ConfigMap, { labelSelector: "set=many" });
  assert.equal(rest.items.length, 2);
});

test("Client writes status and scale separately from the object", async () => {
  const labels = { app: "scaled" };
  const { metadata } = await client.create(Deployment, {
    metadata: inDefault("scaled"),
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: "main", image: "web" }] },
      },
    },
  });
  const scale = await client.scale.get(Deployment, metadata);
  assert.equal(scale.spec?.replicas, 2);
  await client.scale.patch(Deployment, metadata, { spec: { replicas: 3 } });
  const status = { status: { replicas: 1 } };
  await client.status.patch(Deployment, metadata, status);
  const deployment = await client.status.get(Deployment, metadata);
  assert.equal(deployment.spec?.replicas, 3);
  assert.equal(deployment.status?.replicas, 1);
  await client.status.replace(Deployment, {
    ...deployment,
    spec: { ...deployment.spec, replicas: 9 },
    status: { replicas: 4 },
  });
  const replaced = await client.get(Deployment, metadata);
  assert.equal(replaced.spec?.replicas, 3);
  assert.equal(replaced.status?.replicas, 4);
});

test("Client watches all changes from a resource version on", async () => {
  const key = inDefault("watched");
  const { metadata } = await client.list(ConfigMap);
  const { resourceVersion } = metadata;
  const seen: string[] = [];
  const watching = (async () => {
    const options = { namespace: "default", resourceVersion };
    for await (const event of client.watch(ConfigMap, options)) {
      seen.push(event.type);
      if (event.type === "DELETED") return;
    }
  })();
  await client.create(ConfigMap, { metadata: key });
  await client.patch(ConfigMap, key, { data: { a: "1" } });
  await client.delete(ConfigMap, key);
  await watching;
  assert.deepEqual(seen, ["ADDED", "MODIFIED", "DELETED"]);
  await client.create(ConfigMap, { metadata: key });
  server.faults.compact();
  await assert.rejects(async () => {
    const options = { resourceVersion };
    for await (const _event of client.watch(ConfigMap, options));
  }, failsWith(({ isGone }) => isGone));
});

test("Client discovers the path of a kind and all served resources", async () => {
  const deployments = untyped({
    group: "apps",
    version: "v1",
    kind: "Deployment",
  });
  const { plural, scope } = await client.resolve(deployments);
  assert.deepEqual({ plural, scope }, {
    plural: "deployments",
    scope: "Namespaced",
  });
  const resources = await client.resources();
  const found = resources.find(({ kind }) => kind === "Deployment");
  assert.deepEqual(found?.shortNames, ["deploy"]);
  assert.ok(found?.subresources.includes("scale"));
  const unknown = untyped({ group: "x.example", version: "v1", kind: "X" });
  await assert.rejects(
    () => client.list(unknown),
    failsWith(({ isNotFound }) => isNotFound),
  );
});

test("Client logs warnings of the server and throws its errors", async () => {
  const warnings: unknown[] = [];
  const logger = {
    ...silentLogger,
    warn: (_message: string, fields?: object) => warnings.push(fields),
  };
  const warned = new Client({ transport: server.transport }, { logger });
  const object = { metadata: inDefault("typo"), dato: {} };
  await warned.create(ConfigMap, object, { dryRun: true });
  assert.deepEqual(warnings, [{
    warning: 'unknown field "dato"',
    action: "create ConfigMap default/typo",
  }]);
  await assert.rejects(
    () => warned.create(ConfigMap, object, { fieldValidation: "Strict" }),
    /unknown field "dato"/,
  );
  assert.equal(await warned.find(ConfigMap, object.metadata), undefined);
});

test("Client retries when throttled and after a failed connection", async () => {
  server.faults.add({
    verb: "get",
    count: 1,
    effect: { status: 429, retryAfter: 1 },
  });
  const start = performance.now();
  assert.equal(await client.find(ConfigMap, inDefault("none")), undefined);
  assert.ok(performance.now() - start >= 1_000);
  server.faults.dropConnections();
  assert.equal(await client.find(ConfigMap, inDefault("none")), undefined);
});

test("Client connects over plain HTTP, as to kubectl proxy", async () => {
  const plain = await ApiServer.start({ tls: false });
  const config = await configFromText(plain.kubeconfig);
  assert.match(config.server, /^http:/);
  const proxied = new Client(config);
  const { items } = await proxied.list(ConfigMap, {
    namespace: "kube-system",
  });
  assert.ok(items.length > 0);
  await proxied.close();
  await plain.stop();
});

test("An informer over a client follows the server", async () => {
  const here = new Client({ transport: server.transport });
  const informer = new Informer(here, ConfigMap, {
    namespaces: ["default"],
    labelSelector: "informed",
  });
  await informer.start();
  await informer.synced;
  assert.deepEqual([...informer.keys()], []);
  await here.create(ConfigMap, {
    metadata: { ...inDefault("informed"), labels: { informed: "" } },
  });
  await until("the informer sees it", () => informer.get("default/informed"));
  await informer.stop();
});

test("client.createSubresource posts a body with the key of its object", async () => {
  const key = inDefault("account");
  await client.create(ServiceAccount, { metadata: key });
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest" };
  const spec = { audiences: ["vault"], expirationSeconds: 600 };
  const made = await client.createSubresource<
    { metadata: unknown; spec: object; status: { token: string } }
  >(ServiceAccount, key, "token", { ...body, spec });
  assert.partialDeepStrictEqual(made, { metadata: key, spec });
  assert.match(made.status.token, /^[\w-]+\.[\w-]+\.[\w-]+$/);
});

test("client.createSubresource refuses a wrong key, part and body", async () => {
  const key = inDefault("account");
  const call = (args: unknown[]) =>
    client.createSubresource(
      ...[ServiceAccount, ...args] as Parameters<Client["createSubresource"]>,
    );
  const wrong: [unknown[], string][] = [
    [
      ["default/account", "token", {}],
      'Cannot address ServiceAccount: its key must be an object with a name, such as { namespace, name }: received "default/account"',
    ],
    [
      [{ name: "account" }, "token", {}],
      'Cannot address ServiceAccount: a namespaced kind needs a namespace: received name "account" alone',
    ],
    [
      [key, "../b", {}],
      'Cannot address ServiceAccount: its subresource must be a name: received "../b"',
    ],
    [
      [key, "token", "text"],
      'Cannot create ServiceAccount: it must be an object with "metadata": received a string',
    ],
  ];
  for (const [args, message] of wrong) {
    await assert.rejects(() => call(args), { message });
  }
});

test("Client reads a rotated token file when the old token is refused", async () => {
  const folder = temporaryFolder();
  const parts = parse(server.kubeconfig);
  parts.users[0].user = { tokenFile: "token" };
  writeText(folder, "token", server.faults.rotateToken());
  const kubeconfig = writeText(folder, "config", JSON.stringify(parts));
  const rotating = new Client(
    await loadConfig({ kubeconfig, environment: {} }),
  );
  await rotating.list(ConfigMap);
  writeText(folder, "token", server.faults.rotateToken());
  await rotating.list(ConfigMap);
  server.faults.rotateToken();
  await assert.rejects(
    () => rotating.list(ConfigMap),
    failsWith(({ isUnauthorized }) => isUnauthorized),
  );
  await rotating.close();
});
