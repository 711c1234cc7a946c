/**
 * Operator for Tomcat servers and their web applications: two kinds, where many
 * WebApps refer to one Tomcat.
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: Tomcat
 *     metadata: { name: shop }
 *     spec: { version: 11, replicas: 2 }
 *     ---
 *     apiVersion: sample.coracle.dev/v1
 *     kind: WebApp
 *     metadata: { name: cart }
 *     spec: { tomcat: shop, url: "https://example.com/cart.war", context: cart }
 */
import {
  defineKind,
  type ObjectOf,
  Operator,
  patchStatus,
} from "@coracle/operator";
import { Deployment, Service } from "@coracle/operator/kinds";
import { byFunction, watch } from "@coracle/operator/sources";
import { kubernetesDependent, Workflow } from "@coracle/operator/workflows";
import { z } from "zod";

const Tomcat = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Tomcat",
  spec: z.object({
    version: z.int().min(9),
    replicas: z.int().min(0).default(1),
  }),
  status: z.object({ readyReplicas: z.int(), webApps: z.array(z.string()) })
    .partial(),
});
type Tomcat = ObjectOf<typeof Tomcat>;

const WebApp = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "WebApp",
  spec: z.object({
    tomcat: z.string(),
    url: z.url(),
    context: z.string().regex(/^[a-z0-9-]+$/),
  }),
  status: z.object({ deployed: z.string(), message: z.string() }).partial(),
});
type WebApp = ObjectOf<typeof WebApp>;

const APPS = "/usr/local/tomcat/webapps";

// An app names its server. A change of either triggers the other: mappers find
// the apps of a server, and the server of an app, by that name.
const apps = watch<Tomcat, WebApp>(WebApp, {
  mapper: byFunction(({ metadata: { namespace }, spec }) => [
    { namespace, name: spec.tomcat },
  ]),
});
const servers = watch<WebApp, Tomcat>(Tomcat, {
  references: ({ metadata: { namespace }, spec }) => [
    { namespace, name: spec.tomcat },
  ],
});

const workflow = new Workflow<Tomcat>()
  .add(
    "deployment",
    kubernetesDependent<Tomcat, Deployment>(Deployment, {
      async desired({ metadata: { name }, spec }, ctx) {
        const labels = { app: name };
        const volumeMounts = [{ name: "apps", mountPath: APPS }];
        // Each app is fetched before the server starts. Values are passed in the
        // environment, so that no text of a WebApp is run as a command.
        const fetchers = (await ctx.secondaries(apps))
          .toSorted((a, b) => a.metadata.name < b.metadata.name ? -1 : 1)
          .map((app) => ({
            name: `fetch-${app.metadata.name}`,
            image: "curlimages/curl:8.16.0",
            command: ["sh", "-c", `curl -fsSLo "${APPS}/$CONTEXT.war" "$URL"`],
            env: [
              { name: "CONTEXT", value: app.spec.context },
              { name: "URL", value: app.spec.url },
            ],
            volumeMounts,
          }));
        return {
          metadata: { name, labels },
          spec: {
            replicas: spec.replicas,
            selector: { matchLabels: labels },
            template: {
              metadata: { labels },
              spec: {
                initContainers: fetchers,
                containers: [{
                  name: "tomcat",
                  image: `tomcat:${spec.version}`,
                  ports: [{ containerPort: 8080 }],
                  volumeMounts,
                }],
                volumes: [{ name: "apps", emptyDir: {} }],
              },
            },
          },
        };
      },
    }),
  )
  .add(
    "service",
    kubernetesDependent<Tomcat, Service>(Service, {
      desired: ({ metadata: { name } }) => ({
        metadata: { name },
        spec: {
          selector: { app: name },
          ports: [{ port: 80, targetPort: 8080 }],
        },
      }),
    }),
    { dependsOn: ["deployment"] },
  );

const operator = new Operator();

operator.register(Tomcat, {
  async reconcile(_tomcat, ctx) {
    const deployment = workflow.resultOf(ctx).resource("deployment");
    return patchStatus({
      readyReplicas: deployment?.status?.readyReplicas ?? 0,
      webApps: (await ctx.secondaries(apps))
        .map(({ metadata }) => metadata.name).toSorted(),
    });
  },
}, { workflow, watches: [apps], install: true });

operator.register(WebApp, {
  async reconcile({ metadata: { name }, spec }, ctx) {
    const server = await ctx.secondary(servers);
    if (server === undefined) {
      const message = `There is no Tomcat "${spec.tomcat}"`;
      return patchStatus({ deployed: "", message });
    }
    const isKnown = server.status?.webApps?.includes(name) ?? false;
    const isUp = (server.status?.readyReplicas ?? 0) > 0;
    return patchStatus({
      deployed: isKnown && isUp ? spec.url : "",
      message: isUp ? "" : `Tomcat "${spec.tomcat}" is not ready`,
    });
  },
}, { watches: [servers], install: true });

await operator.run();
