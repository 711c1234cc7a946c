import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { withTestCluster } from "@coracle/dev";
import { ConfigMap, Pod, Secret } from "@coracle/operator/kinds";
import {
  accessOf,
  neededVerbs,
  readRequests,
  RequestRecord,
} from "../../dev/testing/request_record.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

test("RequestRecord appends each kind of request once, but no reviews", () => {
  const file = join(temporaryFolder(), "record");
  const request = { verb: "get", group: "", resource: "secrets" };
  const record = new RequestRecord(file);
  record.add(request, 200);
  record.add({ ...request }, 200);
  record.add({
    verb: "create",
    group: "authorization.k8s.io",
    resource: "selfsubjectaccessreviews",
  }, 201);
  new RequestRecord(file).add({ ...request, namespace: "a" }, 200);
  assert.deepEqual(readRequests(file), [
    { ...request, namespace: undefined },
    { ...request, namespace: "a" },
  ]);
});

test("readRequests names the line that is not a request", () => {
  const ODD = '{"verb":"get","group":"","resource":"pods","namespace":1}';
  const line = '{"verb":"get","group":"","resource":"pods"}\n';
  for (const wrong of ["oops", "null", '{"verb":"get"}', ODD]) {
    const file = writeText(temporaryFolder(), "record", line + wrong);
    assert.throws(
      () => readRequests(file),
      /^Error: Cannot read .*record: line 2 is not a recorded request/,
    );
  }
});

test("RequestRecord names a file that it cannot write", () => {
  assert.throws(
    () => new RequestRecord(join(temporaryFolder(), "missing", "record")),
    /^Error: Cannot record requests in .*record: it must be a writable file/,
  );
  const folder = temporaryFolder();
  assert.throws(
    () => new RequestRecord(folder),
    (error: Error) =>
      error.message ===
        `Cannot record requests in ${folder}: it must be a writable file: Cannot open anything but a file`,
  );
});

test("withTestCluster records the requests of the operator alone", async () => {
  const record = join(temporaryFolder(), "record");
  await withTestCluster(
    { record },
    async ({ client, operatorClient, namespace }) => {
      await client.create(ConfigMap, { metadata: { namespace, name: "a" } });
      await operatorClient.get(ConfigMap, { namespace, name: "a" });
      await operatorClient.list(ConfigMap, { namespace: "default" });
      const metadata = { namespace, name: "b" };
      await operatorClient.apply(ConfigMap, { metadata });
      await client.create(Secret, { metadata });
      await operatorClient.apply(Secret, { metadata });
    },
  )();
  const request = { group: "", resource: "configmaps" };
  assert.deepEqual(readRequests(record), [
    { ...request, verb: "get", namespace: "*" },
    { ...request, verb: "list", namespace: "default" },
    { ...request, verb: "patch", namespace: "*" },
    { ...request, verb: "create", namespace: "*" },
    { ...request, resource: "secrets", verb: "patch", namespace: "*" },
  ]);
});

test("a record of exec, attach and portForward has get and create", async () => {
  const record = join(temporaryFolder(), "record");
  const pods = {
    exec: () => Promise.resolve(0),
    attach: () => Promise.resolve(0),
    portForward: () => Promise.resolve(),
  };
  await withTestCluster(
    { record, server: { pods } },
    async ({ client, operatorClient, namespace }) => {
      const key = { namespace, name: "web" };
      const spec = { containers: [{ name: "main", image: "web" }] };
      await client.create(Pod, { metadata: key, spec });
      await (await operatorClient.exec(key, { command: ["x"] })).exit;
      await (await operatorClient.attach(key)).exit;
      await operatorClient.portForward(key, { port: 80 }).connect();
    },
  )();
  assert.deepEqual(
    readRequests(record).map(({ verb, resource }) => `${verb} ${resource}`),
    ["exec", "attach", "portforward"].flatMap((name) =>
      ["get", "create"].map((verb) => `${verb} pods/${name}`)
    ),
  );
});

test("neededVerbs adds the verb create to streams, and to what may create", () => {
  const needed = (text: string, status = 200) => {
    const [verb = "", group = "", resource = ""] = text.split(" ");
    return neededVerbs({ verb, group, resource }, status).join();
  };
  assert.equal(needed("get  pods/exec"), "get,create");
  assert.equal(needed("get  pods/log"), "get");
  assert.equal(needed("get test.dev pods/exec"), "get");
  assert.equal(needed("patch  pods", 201), "patch,create");
  assert.equal(needed("update  pods", 201), "update,create");
  assert.equal(needed("patch  pods"), "patch");
  assert.equal(needed("patch  pods", 403), "patch,create");
  assert.equal(needed("update  pods", 403), "update");
  assert.equal(needed("patch  pods/status", 403), "patch");
});

test("accessOf gives the resource of a request, if it has one", () => {
  assert.deepEqual(
    accessOf("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status?x=1"),
    {
      verb: "patch",
      group: "apps",
      resource: "deployments/status",
      namespace: "a",
    },
  );
  for (const path of ["/version", "/apis/apps/v1", "/healthz"]) {
    assert.equal(accessOf("GET", path), undefined, path);
  }
});
