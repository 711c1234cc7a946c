import assert from "node:assert/strict";
import process from "node:process";
import { after, test } from "node:test";
import type { TestClusterOptions } from "@coracle/dev";
import { ApiServer } from "../../dev/apiserver/server.ts";
import {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  Namespace,
  ValidatingWebhookConfiguration,
} from "../../core/kinds/mod.ts";
import { Operator } from "../../core/operator/operator.ts";
import { TestCluster } from "../../dev/testing/test_cluster.ts";
import { VirtualClock } from "../../dev/testing/virtual_clock.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const { KUBECONFIG } = process.env;
after(() => {
  if (KUBECONFIG === undefined) delete process.env["KUBECONFIG"];
  else process.env["KUBECONFIG"] = KUBECONFIG;
});

/** Starts a test cluster on a server of its own, as on a real cluster. */
async function withServer(
  play: (
    server: ApiServer,
    start: (options?: TestClusterOptions) => Promise<TestCluster>,
  ) => Promise<void>,
): Promise<void> {
  const server = await ApiServer.start({ port: 0 });
  try {
    const folder = temporaryFolder();
    process.env["KUBECONFIG"] = writeText(folder, "config", server.kubeconfig);
    await play(
      server,
      (options) => TestCluster.start({ ...options, cluster: "kubeconfig" }),
    );
  } finally {
    await server.stop();
  }
}

test("a cluster of a kubeconfig deletes its namespace before its operator stops", () =>
  withServer(async ({ client }, start) => {
    const stops: boolean[] = [];
    const kit = await start({
      operator: () => ({
        start: () => Promise.resolve(),
        async stop() {
          const found = await client.find(Namespace, { name: kit.namespace });
          stops.push(found !== undefined);
        },
      }),
    });
    const { namespace } = kit;
    assert.equal(kit.server, undefined);
    await kit.client.create(ConfigMap, { metadata: { namespace, name: "a" } });
    await client.get(ConfigMap, { namespace, name: "a" });
    await kit.stop();
    assert.deepEqual(stops, [false]);
  }));

test("a cluster of a kubeconfig keeps a namespace that was given", () =>
  withServer(async ({ client }, start) => {
    const kit = await start({ namespace: "default" });
    await kit.stop();
    await client.get(Namespace, { name: "default" });
  }));

test("a cluster of a kubeconfig deletes the rights that it has given", () =>
  withServer(async ({ client }, start) => {
    const given = async () => {
      const roles = [
        ...(await client.list(ClusterRole)).items,
        ...(await client.list(ClusterRoleBinding)).items,
      ];
      return roles.filter(({ metadata }) => /^operator-/.test(metadata.name))
        .length;
    };
    const rights = [{ apiGroups: [""], resources: ["pods"], verbs: ["list"] }];
    const kit = await start({ rights });
    assert.equal(await given(), 2);
    await kit.stop();
    assert.equal(await given(), 0);
  }));

test("a cluster of a kubeconfig deletes the webhooks of its operator", () =>
  withServer(async ({ client }, start) => {
    const names = async () =>
      (await client.list(ValidatingWebhookConfiguration)).items.map((
        { metadata },
      ) => metadata.name);
    const kit = await start({
      operator(options) {
        const operator = new Operator(options);
        operator.admit(ConfigMap, { validate: () => undefined }, {
          failurePolicy: "Fail",
        });
        return operator;
      },
    });
    assert.equal((await names()).length, 1);
    await kit.stop();
    assert.deepEqual(await names(), []);
  }));

test("a virtual clock stands still while a cluster of a kubeconfig answers", () =>
  withServer(async (_server, start) => {
    const clock = new VirtualClock();
    const kit = await start({ clock });
    const { client, namespace } = kit;
    let isDue = false;
    clock.setTimer(() => void (isDue = true), 60_000);
    let before: boolean | undefined;
    const read = client.list(ConfigMap, { namespace })
      .then(() => before = isDue);
    await kit.until(() => isDue);
    await read;
    assert.equal(before, false);
    assert.equal(clock.now(), 60_000);
    await kit.stop();
  }));
