import {
  type ApiError,
  type Client,
  defineKind,
  type ObjectKey,
  type OperatorOptions,
  untyped,
} from "@coracle/operator";
import { VirtualClock, withTestCluster } from "@coracle/dev";
import {
  Deployment,
  HorizontalPodAutoscaler,
  NetworkPolicy,
  PodDisruptionBudget,
  Secret,
  Service,
} from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { operator } from "./memcached_servers.ts";

const names = {
  group: "memcached.c5c3.io",
  kind: "Memcached",
  plural: "memcacheds",
  scope: "Namespaced",
} as const;
const Memcached = untyped({ ...names, version: "v1beta1" });
const Old = untyped({ ...names, version: "v1alpha1" });
const ServiceMonitor = defineKind({
  group: "monitoring.coreos.com",
  version: "v1",
  kind: "ServiceMonitor",
  spec: z.looseObject({}),
});

interface Fields {
  readonly spec: {
    readonly replicas?: number;
    readonly autoscaling?: { readonly metrics?: readonly unknown[] };
  };
  readonly status?: {
    readonly conditions?: readonly { type: string; reason: string }[];
    readonly serverList?: readonly string[];
    readonly readyReplicas?: number;
  };
}

async function read(
  client: Client,
  key: ObjectKey,
): Promise<Fields> {
  return await client.get(Memcached, key) as unknown as Fields;
}

function cluster() {
  return {
    kinds: [ServiceMonitor],
    operator: (options: OperatorOptions) =>
      operator({ ...options, probes: undefined, leaderElection: undefined }),
    clock: new VirtualClock(),
    server: { simulate: true },
  };
}

test(
  "A Memcached of v1alpha1 has servers, and a new Secret replaces its pods",
  withTestCluster(cluster(), async (cluster) => {
    const { client, namespace } = cluster;
    const key = { namespace, name: "sessions" };
    const spec = {
      replicas: 2,
      memcached: { verbosity: 2 },
      highAvailability: {
        podDisruptionBudget: { enabled: true, minAvailable: 1 },
      },
      monitoring: { enabled: true, serviceMonitor: {} },
      security: {
        sasl: { enabled: true, credentialsSecretRef: { name: "passwords" } },
        networkPolicy: { enabled: true },
      },
    };
    await client.create(Old, { metadata: key, spec });
    const conditions = async () => {
      const { status } = await read(client, key);
      return Object.fromEntries(
        status?.conditions?.map(({ type, reason }) => [type, reason]) ?? [],
      );
    };
    await cluster.until(async () =>
      (await conditions())["Ready"] === "MemcachedReady"
    );
    assert.deepEqual(await conditions(), {
      Available: "Available",
      Progressing: "ProgressingComplete",
      Degraded: "SecretNotFound",
      Ready: "MemcachedReady",
    });
    const { status } = await read(client, key);
    assert.deepEqual(status?.serverList, [`sessions.${namespace}:11211`]);
    const template = async () =>
      (await client.get(Deployment, key)).spec?.template;
    const hash = async () =>
      (await template())?.metadata?.annotations
        ?.["memcached.c5c3.io/secret-hash"];
    assert.equal(await hash(), undefined);
    const passwords = { namespace, name: "passwords" };
    await client.create(Secret, {
      metadata: passwords,
      data: { "password-file": "YTpi" },
    });
    await cluster.until(async () => await hash() !== undefined);
    const first = await hash();
    await client.patch(Secret, passwords, {
      data: { "password-file": "YTpj" },
    });
    await cluster.until(async () => await hash() !== first);
    const [server, exporter] = (await template())?.spec?.containers ?? [];
    assert.equal(
      server?.args?.join(" "),
      "-m 64 -c 1024 -t 4 -I 1m -vv -Y /etc/memcached/sasl/password-file",
    );
    assert.equal(exporter?.image, "prom/memcached-exporter:v0.15.4");
    const service = await client.get(Service, key);
    assert.deepEqual(
      service.spec?.ports?.map(({ port }) => port),
      [11211, 9150],
    );
    await client.get(PodDisruptionBudget, key);
    await client.get(ServiceMonitor, key);
    await client.get(NetworkPolicy, key);

    // What is switched off is deleted.
    await client.patch(Memcached, key, {
      spec: { highAvailability: null, monitoring: null, security: null },
    });
    await cluster.until(async () =>
      !await client.find(PodDisruptionBudget, key) &&
      !await client.find(ServiceMonitor, key) &&
      !await client.find(NetworkPolicy, key)
    );
    assert.equal((await conditions())["Degraded"], "NotDegraded");
  }),
);

test(
  "An autoscaled Memcached is defaulted, and leaves the replicas alone",
  withTestCluster(cluster(), async (cluster) => {
    const { client, namespace } = cluster;
    const key = { namespace, name: "sessions" };
    await client.create(Memcached, {
      metadata: key,
      spec: {
        autoscaling: { enabled: true, maxReplicas: 5 },
        resources: { requests: { cpu: "100m" } },
      },
    });
    const { spec } = await read(client, key);
    assert.equal(spec.replicas, undefined);
    assert.equal(spec.autoscaling?.metrics?.length, 1);
    await cluster.until(() => client.find(HorizontalPodAutoscaler, key));
    await client.patch(Deployment, key, { spec: { replicas: 4 } });
    await cluster.until(async () =>
      (await read(client, key)).status?.readyReplicas === 4
    );
  }),
);

test(
  "A Memcached that contradicts itself is refused with each field",
  withTestCluster(cluster(), async ({ client, namespace }) => {
    const refusal = await client.create(Old, {
      metadata: { namespace, name: "sessions" },
      spec: {
        replicas: 2,
        resources: { limits: { memory: "95Mi" } },
        highAvailability: {
          podDisruptionBudget: { enabled: true },
          gracefulShutdown: { enabled: true, preStopDelaySeconds: 30 },
        },
        security: { sasl: { enabled: true }, tls: { enabled: true } },
        autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 2 },
      },
    }).catch((error: unknown) => error);
    const { details } = refusal as ApiError;
    assert.deepEqual(details.causes?.map(({ field }) => field), [
      "spec.resources.limits.memory",
      "spec.highAvailability.podDisruptionBudget",
      "spec.highAvailability.gracefulShutdown.terminationGracePeriodSeconds",
      "spec.security.sasl.credentialsSecretRef.name",
      "spec.security.tls.certificateSecretRef.name",
      "spec.replicas",
      "spec.autoscaling.minReplicas",
      "spec.resources.requests.cpu",
    ]);
  }),
);
