/**
 * Operator for static web pages, as a workflow. For each WebPage it creates a
 * ConfigMap with the HTML, a Deployment that serves it, a Service, and an Ingress
 * while the page is exposed:
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: WebPage
 *     metadata: { name: hello }
 *     spec: { html: "<h1>Hello</h1>", exposed: true }
 */
import {
  defineKind,
  type ObjectOf,
  Operator,
  patchStatus,
} from "@coracle/operator";
import {
  ConfigMap,
  Deployment,
  Ingress,
  Service,
} from "@coracle/operator/kinds";
import { kubernetesDependent, Workflow } from "@coracle/operator/workflows";
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
type WebPage = ObjectOf<typeof WebPage>;

/** Metadata of all parts of a page, which owns them. */
const metadataOf = ({ metadata: { name } }: WebPage) => ({
  name,
  labels: { app: name },
});

const hostOf = ({ metadata: { name, namespace } }: WebPage) =>
  `${name}.${namespace}.example.com`;

const html = kubernetesDependent<WebPage, ConfigMap>(ConfigMap, {
  desired: (page) => ({
    metadata: metadataOf(page),
    data: { "index.html": page.spec.html },
  }),
});

const server = kubernetesDependent<WebPage, Deployment>(Deployment, {
  desired(page) {
    const { name, labels } = metadataOf(page);
    const nginx = {
      name: "nginx",
      image: "nginx:1.29-alpine",
      ports: [{ containerPort: 80 }],
      volumeMounts: [{ name: "html", mountPath: "/usr/share/nginx/html" }],
    };
    const volumes = [{ name: "html", configMap: { name } }];
    return {
      metadata: { name, labels },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [nginx], volumes },
        },
      },
    };
  },
});

const service = kubernetesDependent<WebPage, Service>(Service, {
  desired(page) {
    const { name, labels } = metadataOf(page);
    return {
      metadata: { name, labels },
      spec: { selector: labels, ports: [{ port: 80 }] },
    };
  },
});

const ingress = kubernetesDependent<WebPage, Ingress>(Ingress, {
  desired(page) {
    const { name, labels } = metadataOf(page);
    const backend = { service: { name, port: { number: 80 } } };
    return {
      metadata: { name, labels },
      spec: {
        rules: [{
          host: hostOf(page),
          http: { paths: [{ path: "/", pathType: "Prefix", backend }] },
        }],
      },
    };
  },
});

// A node waits until its dependencies are ready, and is deleted before them. An
// unchanged object costs no request; foreign changes are reverted.
const workflow = new Workflow<WebPage>()
  .add("html", html)
  .add("server", server, {
    dependsOn: ["html"],
    readyWhen: ({ resource }) => (resource?.status?.readyReplicas ?? 0) > 0,
  })
  .add("service", service)
  .add("ingress", ingress, {
    dependsOn: ["service"],
    reconcileWhen: ({ primary }) => primary.spec.exposed,
  });

const operator = new Operator();

operator.register(WebPage, {
  // Runs after the workflow, when a page or a part of it has changed.
  reconcile(page, ctx) {
    const { name, namespace } = page.metadata;
    const host = page.spec.exposed ? hostOf(page) : `${name}.${namespace}.svc`;
    const ready = workflow.resultOf(ctx).done;
    return patchStatus({ ready, url: `http://${host}/` });
  },

  // Runs before a page is removed. Owned objects are garbage collected; external
  // resources are cleaned up here: a DNS record, a cache, an account.
  cleanup(page, ctx) {
    ctx.log.info("Page is taken down", { url: page.status?.url });
  },
}, { workflow, install: true });

await operator.run();
