/**
 * Process in the place of etcd and kube-apiserver that answers the hundred tests
 * at once, without looking at objects: the limit of a server with this runtime.
 *
 * @module
 */
import { createServer as createHttp } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import process from "node:process";
import { ETCD_FLAGS } from "../../dev/cli/envtest/flag_lists.ts";
import { readKubeApiServer } from "../../dev/cli/envtest/kube_apiserver.ts";
import { Meeting } from "../../dev/cli/envtest/meeting.ts";
import { readProgramFlags } from "../../dev/cli/envtest/program_flags.ts";

const DISCOVERY_KIND = "APIGroupDiscoveryList";
const DISCOVERY =
  `application/json;g=apidiscovery.k8s.io;v=v2;as=${DISCOVERY_KIND}`;
const CONFIG_MAP = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "one", resourceVersion: "2" },
  data: { a: "1" },
};
const DEPLOYMENT = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web" },
  spec: { replicas: 3 },
};
const watches = new Map<string, ServerResponse>();
const updated = new Set<string>();
let created = 0;

/** JSON of an answer. */
interface Answer {
  readonly kind: string;
  readonly [field: string]: unknown;
}

function send(response: ServerResponse, status: number, value: Answer): void {
  const body = JSON.stringify(value);
  response.writeHead(status, {
    "content-type": value.kind === DISCOVERY_KIND
      ? DISCOVERY
      : "application/json",
    "content-length": body.length,
  });
  response.end(body);
}

function failure(code: number, reason: string): Answer {
  return { apiVersion: "v1", kind: "Status", status: "Failure", code, reason };
}

/** Discovery of namespaces, which envtest reads; other groups have none. */
function discovery(path: string): Answer {
  const namespaces = {
    resource: "namespaces",
    singularResource: "namespace",
    responseKind: { group: "", version: "v1", kind: "Namespace" },
    scope: "Cluster",
    verbs: ["get"],
  };
  return {
    kind: DISCOVERY_KIND,
    apiVersion: "apidiscovery.k8s.io/v2",
    items: path === "/apis" ? [] : [{
      metadata: { name: "" },
      versions: [{ version: "v1", resources: [namespaces] }],
    }],
  };
}

function namespace(name: string): Answer {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name } };
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { method = "", url = "" } = request;
  const [path = "", query = ""] = url.split("?");
  const [, space = ""] = /\/namespaces\/([^/]+)/.exec(path) ?? [];
  if (path === "/healthz") return void response.end("ok");
  if (path === "/api" || path === "/apis") {
    return send(response, 200, discovery(path));
  }
  if (path.endsWith("/namespaces")) {
    return send(response, 201, namespace(`small-${created++}`));
  }
  if (path.endsWith("/default")) return send(response, 200, namespace(space));
  if (query === "watch=true") {
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    watches.set(space, response);
    return;
  }
  if (!path.includes("/configmaps")) {
    const list = { ...DEPLOYMENT, kind: "DeploymentList", items: [DEPLOYMENT] };
    const status = method === "POST" ? 201 : 200;
    return send(response, status, method === "GET" ? list : DEPLOYMENT);
  }
  if (method === "GET") return send(response, 404, failure(404, "NotFound"));
  if (method === "PUT" && updated.has(space)) {
    return send(response, 409, failure(409, "Conflict"));
  }
  if (method === "PUT") updated.add(space);
  send(response, method === "POST" ? 201 : 200, CONFIG_MAP);
  if (method !== "POST") return;
  const event = { type: "ADDED", object: CONFIG_MAP };
  watches.get(space)?.write(`${JSON.stringify(event)}\n`);
}

const flags = readProgramFlags(process.argv.slice(3), ETCD_FLAGS);
const { hostname, port } = new URL(flags.get("listen-client-urls")?.[0] ?? "");
let meeting: Meeting | undefined;
createHttp((_, response) => void response.end('{"health":"true"}'))
  .listen(Number(port), hostname, () => meeting = Meeting.open(Number(port)));
const timer = setInterval(async () => {
  const caller = meeting?.nextCaller();
  if (caller === undefined) return;
  clearInterval(timer);
  await caller.answer();
  const { options } = readKubeApiServer(caller.args);
  createServer({
    cert: options.serving?.certificate,
    key: options.serving?.key,
    ca: options.clientAuthorities,
    requestCert: true,
    rejectUnauthorized: false,
  }, (request, response) => {
    request.resume();
    request.once("end", () => answer(request, response));
  }).listen(options.port, options.host);
}, 20);
process.once("SIGTERM", () => {
  meeting?.close();
  process.exit(0);
});
