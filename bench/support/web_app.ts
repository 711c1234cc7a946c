import { z } from "zod";
import type { ObjectOf } from "@coracle/operator/client";
import type { CustomResource, DefinedKind } from "@coracle/operator/crd";
import { defineKind } from "../../core/crd/define_kind.ts";
import { Deployment, StatefulSet } from "../../core/kinds/apps_v1.ts";
import {
  ConfigMap,
  Service,
  ServiceAccount,
} from "../../core/kinds/core_v1.ts";
import { Ingress } from "../../core/kinds/networking_v1.ts";
import { kubernetesDependent } from "../../workflows/dependents/kubernetes_dependent.ts";
import { Workflow } from "../../workflows/graph/workflow.ts";

/** Custom resource with ten dependents. */
export type WebApp = CustomResource<
  { image: string; page?: string | undefined },
  Record<string, never>
>;

/** Kind of a {@linkcode WebApp}. */
export const WebApp: DefinedKind<WebApp> = defineKind({
  group: "bench.coracle.dev",
  version: "v1",
  kind: "WebApp",
  spec: z.object({ image: z.string(), page: z.string().optional() }),
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

/** Content of the ConfigMap that changes with a page. */
export function pageText(page: string | undefined): string {
  return `port: 8080\npage: ${page ?? "none"}\n`;
}

function configMap(part: string, text: (app: App) => string) {
  return kubernetesDependent<App, ConfigMap>(ConfigMap, {
    desired: (app) => ({
      metadata: named(app, part).metadata,
      data: { "config.yaml": text(app) },
    }),
  });
}

/** Graph of the ten dependents of an app. */
export function webAppWorkflow(): Workflow<App> {
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
    .add(
      "config",
      configMap("config", (app) => `name: ${app.metadata.name}\n`),
    )
    .add("page", configMap("page", (app) => pageText(app.spec.page)))
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
