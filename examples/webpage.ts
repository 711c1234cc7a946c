/**
 * An operator for static web pages. From one WebPage it makes a ConfigMap with
 * the HTML, a Deployment that serves it, a Service in front, and an Ingress
 * while the page is exposed:
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: WebPage
 *     metadata: { name: hello }
 *     spec: { html: "<h1>Hello</h1>", exposed: true }
 */
import { defineKind, Operator, patchStatus } from "@coracle/operator";
import {
  ConfigMap,
  Deployment,
  Ingress,
  Service,
} from "@coracle/operator/kinds";
import { z } from "zod";

const WebPage = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "WebPage",
  shortNames: ["wp"],
  spec: z.object({ html: z.string(), exposed: z.boolean().default(false) }),
  status: z.object({ ready: z.boolean(), url: z.string() }).partial(),
  printerColumns: [
    { name: "Ready", type: "boolean", jsonPath: ".status.ready" },
    { name: "URL", type: "string", jsonPath: ".status.url" },
  ],
});

const operator = new Operator();

operator.register(WebPage, {
  // Runs when a page has changed, and until it is ready. What it applies is
  // owned by the page, and applying what is there already changes nothing.
  async reconcile(page, ctx) {
    const { name, namespace } = page.metadata;
    const { html, exposed } = page.spec;
    const labels = { app: name };
    const host = `${name}.${namespace}.example.com`;

    await ctx.apply(ConfigMap, {
      metadata: { name, labels },
      data: { "index.html": html },
    });
    const deployment = await ctx.apply(Deployment, {
      metadata: { name, labels },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            containers: [{
              name: "nginx",
              image: "nginx:1.29-alpine",
              ports: [{ containerPort: 80 }],
              volumeMounts: [
                { name: "html", mountPath: "/usr/share/nginx/html" },
              ],
            }],
            volumes: [{ name: "html", configMap: { name } }],
          },
        },
      },
    });
    await ctx.apply(Service, {
      metadata: { name, labels },
      spec: { selector: labels, ports: [{ port: 80 }] },
    });
    if (!exposed) await ctx.delete(Ingress, name);
    else {
      const backend = { service: { name, port: { number: 80 } } };
      await ctx.apply(Ingress, {
        metadata: { name, labels },
        spec: {
          rules: [{
            host,
            http: { paths: [{ path: "/", pathType: "Prefix", backend }] },
          }],
        },
      });
    }

    const ready = (deployment.status?.readyReplicas ?? 0) > 0;
    const url = `http://${exposed ? host : `${name}.${namespace}.svc`}/`;
    const result = patchStatus({ ready, url });
    return ready ? result : result.rescheduleAfter("2s");
  },

  // Runs before a page vanishes. What it owns goes with it; this is the place
  // for what the cluster does not know of: a DNS record, a cache, an account.
  cleanup(page, ctx) {
    ctx.log.info("Page is taken down", { url: page.status?.url });
  },
}, { install: true });

await operator.run();
