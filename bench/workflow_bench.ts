import { z } from "zod";
import type { ObjectOf } from "../core/api/kind.ts";
import { ApiServer } from "../apiserver/server.ts";
import { Client } from "../core/client/client.ts";
import type { Transport } from "../core/client/transport/transport.ts";
import { defineKind } from "../core/crd/define_kind.ts";
import { installCrd } from "../core/crd/install_crd.ts";
import { Deployment, StatefulSet } from "../core/kinds/apps_v1.ts";
import { ConfigMap, Service, ServiceAccount } from "../core/kinds/core_v1.ts";
import { Ingress } from "../core/kinds/networking_v1.ts";
import { silentLogger } from "../core/logger.ts";
import { Operator } from "../core/operator/operator.ts";
import { kubernetesDependent } from "../workflows/dependents/kubernetes_dependent.ts";
import { Workflow } from "../workflows/graph/workflow.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { measureRounds } from "./support/run_rounds.ts";
import { peakRss } from "./support/sampling.ts";

const PRIMARIES = 50;
const NODES = 10;

const WebApp = defineKind({
  group: "bench.coracle.dev",
  version: "v1",
  kind: "WebApp",
  spec: z.object({ image: z.string() }),
});
type App = ObjectOf<typeof WebApp>;

/** Metadata of one of the objects of an app. */
function named({ metadata: { name, namespace } }: App, part: string) {
  const labels = { app: name, part };
  return { metadata: { name: `${name}-${part}`, namespace, labels }, labels };
}

/** Workload spec of one part of an app, for a Deployment or StatefulSet. */
function workload(app: App, part: string) {
  const { metadata, labels } = named(app, part);
  const container = {
    name: part,
    image: `${app.spec.image}/${part}:1.4.2`,
    args: ["--listen=:8080", `--config=/etc/${part}/config.yaml`],
    ports: [{ name: "http", containerPort: 8080 }],
    env: [{ name: "LOG_LEVEL", value: "info" }],
    resources: {
      requests: { cpu: "100m", memory: "128Mi" },
      limits: { memory: "256Mi" },
    },
    readinessProbe: { httpGet: { path: "/ready", port: "http" } },
    volumeMounts: [{ name: "config", mountPath: `/etc/${part}` }],
  };
  const config = { name: `${app.metadata.name}-config` };
  return {
    metadata,
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: `${app.metadata.name}-account`,
          containers: [container],
          volumes: [{ name: "config", configMap: config }],
        },
      },
    },
  };
}

function deployment(part: string) {
  return kubernetesDependent<App, Deployment>(Deployment, {
    desired: (app) => workload(app, part),
  });
}

function service(part: string) {
  return kubernetesDependent<App, Service>(Service, {
    desired: (app) => {
      const { metadata, labels } = named(app, part);
      const ports = [{ name: "http", port: 80, targetPort: "http" }];
      return { metadata, spec: { selector: labels, ports } };
    },
  });
}

function configMap(part: string) {
  return kubernetesDependent<App, ConfigMap>(ConfigMap, {
    desired: (app) => ({
      metadata: named(app, part).metadata,
      data: { "config.yaml": `name: ${app.metadata.name}\nport: 8080\n` },
    }),
  });
}

function makeWorkflow(): Workflow<App> {
  const account = kubernetesDependent<App, ServiceAccount>(ServiceAccount, {
    desired: (app) => ({ metadata: named(app, "account").metadata }),
  });
  const database = kubernetesDependent<App, StatefulSet>(StatefulSet, {
    desired: (app) => {
      const { metadata, spec } = workload(app, "database");
      return { metadata, spec: { ...spec, serviceName: metadata.name } };
    },
  });
  const ingress = kubernetesDependent<App, Ingress>(Ingress, {
    desired: (app) => {
      const { metadata } = named(app, "web");
      const backend = {
        service: { name: metadata.name, port: { name: "http" } },
      };
      const paths = [{ path: "/", pathType: "Prefix" as const, backend }];
      const host = `${metadata.name}.example.com`;
      return { metadata, spec: { rules: [{ host, http: { paths } }] } };
    },
  });
  const flow: Workflow<App> = new Workflow<App>();
  return flow
    .add("account", account)
    .add("config", configMap("config"))
    .add("page", configMap("page"))
    .add("database", database, { dependsOn: ["account", "config"] })
    .add("databaseService", service("database"), { dependsOn: ["database"] })
    .add("cache", deployment("cache"), { dependsOn: ["account", "config"] })
    .add("cacheService", service("cache"), { dependsOn: ["cache"] })
    .add("web", deployment("web"), {
      dependsOn: ["page", "databaseService", "cacheService"],
    })
    .add("webService", service("web"), { dependsOn: ["web"] })
    .add("ingress", ingress, { dependsOn: ["webService"] });
}

/** Client of a server that counts its write requests. */
function countingClient(server: ApiServer): {
  readonly client: Client;
  readonly writes: () => number;
} {
  const { transport } = server;
  let writes = 0;
  const counting: Transport = {
    send(request) {
      if (request.method !== "GET") writes++;
      return transport.send(request);
    },
    close: () => transport.close(),
  };
  return {
    client: new Client({ transport: counting }),
    writes: () => writes,
  };
}

async function coracle(): Promise<readonly Measure[]> {
  const server = await ApiServer.start({ port: false });
  const { client, writes } = countingClient(server);
  await installCrd(client, WebApp);
  let runs = 0;
  let done = () => {};
  let goal = Infinity;
  const operator = new Operator({ client, logger: silentLogger });
  const controller = operator.register(WebApp, {
    reconcile(_app, { workflow }) {
      verify(workflow?.done === true, "the workflow must be done");
      if (++runs === goal) done();
    },
  }, { workflow: makeWorkflow() });
  await operator.start();
  const keys = Array.from({ length: PRIMARIES }, (_, i) => `default/app-${i}`);
  for (let i = 0; i < PRIMARIES; i++) {
    await client.create(WebApp, {
      metadata: { name: `app-${i}`, namespace: "default" },
      spec: { image: "registry.example.com/app" },
    });
  }
  /** Until all writes have come back, and nothing runs because of them. */
  for (let before = -1; before < runs || runs < PRIMARIES;) {
    before = runs;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  verify(
    writes() >= PRIMARIES * NODES,
    `every node must have been written: ${writes()}`,
  );
  const written = writes();
  const round = async () => {
    goal = runs + PRIMARIES;
    const ended = new Promise<void>((resolve) => done = resolve);
    for (const key of keys) controller.trigger(key);
    await ended;
    await new Promise(setImmediate);
  };
  const measures = await measureRounds(round, PRIMARIES);
  verify(writes() === written, "nothing may be written that is unchanged");
  await operator.stop();
  await server.stop();
  return [...measures, peakRss()];
}

export const bench: Bench = {
  name: "workflow",
  what: `a run with ${NODES} unchanged dependents in a graph`,
  rounds: 3,
  subjects: [{ name: "coracle", run: coracle }],
};
