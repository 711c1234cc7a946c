import assert from "node:assert/strict";
import { test } from "node:test";
import { TestCluster } from "@coracle/dev";
import { Operator } from "@coracle/operator/core";
import {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  ServiceAccount,
} from "@coracle/operator/kinds";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import { metricsReader } from "../../dev/cli/optional_manifests.ts";
import { inTime } from "../support/in_time.ts";

const RBAC_GROUP = "rbac.authorization.k8s.io";

test("Metrics are for tokens that the API server knows and lets read them", async () => {
  let operator: Operator | undefined;
  const cluster = await TestCluster.start({
    rights: "manifests",
    server: { authorization: "rbac" },
    operator(options) {
      operator = new Operator({
        ...options,
        probes: {
          port: 0,
          host: "127.0.0.1",
          metrics: { secure: true, port: 0, host: "127.0.0.1" },
        },
      });
      operator.register(ConfigMap, { reconcile() {} });
      return operator;
    },
  });
  const { client, namespace } = cluster;
  const role = { metadata: { name: `${namespace}-metrics-reader` } };
  const tokenOf = async (name: string) => {
    await client.create(ServiceAccount, { metadata: { namespace, name } });
    const { status } = await client.createSubresource<
      { readonly status: { readonly token: string } }
    >(ServiceAccount, { namespace, name }, "token", {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {},
    });
    return status.token;
  };
  const secure = await openHttpTransport({
    server: `https://127.0.0.1:${operator?.metricsPort}`,
    insecureSkipTlsVerify: true,
  });
  const ask = async (path: string, token: string | undefined) => {
    const headers = token === undefined
      ? {}
      : { authorization: `Bearer ${token}` };
    const request = { method: "GET", path, headers } as const;
    const { status, body } = await secure.send(request);
    let text = "";
    const decoder = new TextDecoder();
    for await (const part of body) {
      text += decoder.decode(part, { stream: true });
    }
    return { status, text };
  };
  const read = (path: string, token?: string) =>
    inTime(`an answer to ${path}`, ask(path, token));
  try {
    const tokens = {
      reader: await tokenOf("reader"),
      other: await tokenOf("other"),
    };
    await client.create(ClusterRole, {
      ...role,
      rules: metricsReader({ name: namespace }).rules?.slice(),
    });
    await client.create(ClusterRoleBinding, {
      ...role,
      roleRef: { apiGroup: RBAC_GROUP, kind: "ClusterRole", ...role.metadata },
      subjects: [{ kind: "ServiceAccount", namespace, name: "reader" }],
    });
    const forged = `${tokens.reader.slice(0, -4)}AAAA`;
    assert.equal((await read("/metrics")).status, 401);
    assert.equal((await read("/metrics", forged)).status, 401);
    const denied = await read("/metrics", tokens.other);
    assert.deepEqual([denied.status, denied.text], [
      403,
      `Cannot serve this path: user "system:serviceaccount:${namespace}:other" may not get it\n`,
    ]);
    await cluster.until(async () =>
      (await read("/metrics", tokens.reader)).status === 200
    );
    const { text } = await read("/metrics", tokens.reader);
    assert.match(
      text,
      /^coracle_controller_ready\{controller="configmap"\} 1$/m,
    );
    assert.equal((await read("/debug/state", tokens.reader)).status, 403);
    const plain = await fetch(
      `http://127.0.0.1:${operator?.probePort}/metrics`,
    );
    assert.equal(plain.status, 404);
    assert.match(await plain.text(), /metrics have a port of their own/);
    for (const token of [tokens.reader, tokens.other, forged]) {
      assert.ok(!cluster.log.includes(token), "a token is in the log");
    }
  } finally {
    secure.close();
    await client.delete(ClusterRole, role.metadata).catch(() => {});
    await client.delete(ClusterRoleBinding, role.metadata).catch(() => {});
    await cluster.stop();
  }
});
