/**
 * Admission behind a Service: its name in the certificate, its registration, and
 * replicas that come and go.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type TestCluster, withTestCluster } from "@coracle/dev";
import {
  type Clock,
  deny,
  Operator,
  systemClock,
} from "@coracle/operator/core";
import {
  ConfigMap,
  Service,
  ValidatingWebhookConfiguration,
} from "@coracle/operator/kinds";
import { replaceHost } from "../../core/client/host.ts";
import { ServiceFront } from "../support/service_front.ts";

/** Time for which a Service leads to a replica that is not ready, in milliseconds. */
const LAG_MS = 100;

/** Clock whose pauses of one to three seconds are short; time limits stay. */
const hurried: Clock = {
  ...systemClock,
  setTimer: (callback, delay) =>
    systemClock.setTimer(
      callback,
      delay >= 1_000 && delay <= 3_000 ? delay / 10 : delay,
    ),
};

/**
 * Serves a front for the replicas, under the name of a Service that leads to it from
 * the API server, and in DNS.
 */
async function withService(
  { client, namespace }: TestCluster,
  replicas: () => readonly Operator[],
  body: (port: number) => Promise<void>,
): Promise<void> {
  // An endpoint slice follows the readiness of a pod a while later.
  const left = new Map<Operator, number>();
  const front = await ServiceFront.start(() =>
    replicas().map((operator) => {
      const { started, webhooks } = operator.health();
      if (started) left.delete(operator);
      else if (!left.has(operator)) left.set(operator, performance.now());
      const since = performance.now() - (left.get(operator) ?? Infinity);
      return { ready: started || since < LAG_MS, port: webhooks?.port };
    })
  );
  const undo = replaceHost({
    addressOf: (name) =>
      name === `guard.${namespace}.svc` ? "127.0.0.1" : undefined,
  });
  try {
    await client.create(Service, {
      metadata: { namespace, name: "guard" },
      spec: { type: "ExternalName", externalName: "localhost" },
    });
    await body(front.port);
  } finally {
    undo();
    await front.stop();
  }
}

function replicaOf(
  { operatorClient, logger, namespace }: TestCluster,
  port: number,
): Operator {
  const operator = new Operator({
    client: operatorClient,
    logger,
    clock: hurried,
    namespaces: [namespace],
    webhooks: {
      port: 0,
      host: "127.0.0.1",
      service: { namespace, name: "guard", port },
    },
  });
  operator.admit(ConfigMap, {
    validate: ({ data }) =>
      data?.["wrong"] === undefined ? undefined : deny("it is wrong"),
  }, { failurePolicy: "Fail" });
  return operator;
}

test(
  "webhooks are registered once the Service leads to a listener with its name",
  withTestCluster({}, async (cluster) => {
    const { client, namespace, until } = cluster;
    const served: Operator[] = [];
    await withService(cluster, () => served, async (port) => {
      const operator = replicaOf(cluster, port);
      const name = `guard.${namespace}`;
      await operator.start();
      try {
        // Ready, so that the Service may lead there; not registered before it does.
        assert.equal(operator.health().ready, true);
        await until(() => operator.health().webhooks?.error !== undefined);
        assert.match(
          operator.health().webhooks?.error ?? "",
          new RegExp(
            `^Cannot reach the webhooks at https://guard\\.${namespace}\\.svc:${port}: `,
          ),
        );
        assert.equal(operator.health().webhooks?.registered, false);
        assert.equal(
          await client.find(ValidatingWebhookConfiguration, { name }),
          undefined,
        );
        served.push(operator);
        await until(() => operator.health().webhooks?.registered);
        const { webhooks = [] } = await client.get(
          ValidatingWebhookConfiguration,
          { name },
        );
        assert.deepEqual(webhooks[0]?.clientConfig.service, {
          namespace,
          name: "guard",
          port,
          path: "/validate/core/v1/configmap",
        });
        await until(() =>
          client.create(ConfigMap, {
            metadata: { namespace, name: "a" },
            data: { wrong: "yes" },
          }, { dryRun: true }).then(
            () => false,
            ({ message }) => /denied the request: it is wrong/.test(message),
          )
        );
      } finally {
        await operator.removeWebhooks();
        await operator.stop();
      }
    });
  }),
);

test(
  "two of three replicas stop and start under load without a refused request",
  withTestCluster({}, async (cluster) => {
    const { client, namespace, until } = cluster;
    const replicas: Operator[] = [];
    await withService(cluster, () => replicas, async (port) => {
      for (let count = 0; count < 3; count++) {
        const operator = replicaOf(cluster, port);
        replicas.push(operator);
        await operator.start();
      }
      await until(() =>
        replicas.every((one) => one.health().webhooks?.registered)
      );
      const failures: unknown[] = [];
      let done = false;
      let count = 0;
      const load = Array.from({ length: 4 }, async (_, index) => {
        while (!done) {
          const metadata = { namespace, name: `a-${index}` };
          await client.create(ConfigMap, { metadata }, { dryRun: true })
            .catch((error: unknown) => failures.push(error));
          count++;
        }
      });
      for (const index of [0, 1]) {
        const before = count;
        await replicas[index]?.stop();
        await until(() => count > before + 20);
      }
      const before = count;
      await replicas[0]?.start();
      await until(() => count > before + 20);
      done = true;
      await Promise.all(load);
      await replicas[0]?.removeWebhooks();
      await Promise.all(replicas.map((operator) => operator.stop()));
      assert.deepEqual(failures, []);
    });
  }),
);
