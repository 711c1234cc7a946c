import {
  pageNotFound,
  type ServerResponse,
  textResponse,
} from "./http/exchange.ts";

/** Post-start hooks of kube-apiserver, which have all run when the server answers. */
const HOOKS = `
  start-apiserver-admission-initializer generic-apiserver-start-informers
  priority-and-fairness-config-consumer priority-and-fairness-filter
  storage-object-count-tracker-hook storage-readiness
  start-apiextensions-informers start-apiextensions-controllers
  crd-informer-synced start-system-namespaces-controller
  start-cluster-authentication-info-controller
  start-kube-apiserver-identity-lease-controller
  start-kube-apiserver-identity-lease-garbage-collector
  start-legacy-token-tracking-controller start-service-ip-repair-controllers
  rbac/bootstrap-roles scheduling/bootstrap-system-priority-classes
  priority-and-fairness-config-producer bootstrap-controller
  start-kube-aggregator-informers apiservice-status-local-available-controller
  apiservice-status-remote-available-controller
  apiservice-registration-controller apiservice-discovery-controller
  kube-apiserver-autoregistration
`.trim().split(/\s+/).map((name) => `poststarthook/${name}`);

const COMMON = [
  ...HOOKS,
  "autoregister-completion",
  "poststarthook/apiservice-openapi-controller",
  "poststarthook/apiservice-openapiv3-controller",
];

/** Health checks of each endpoint, in kube-apiserver's order. */
const CHECKS: ReadonlyMap<string, readonly string[]> = new Map([
  ["healthz", ["ping", "log", "etcd", ...COMMON]],
  ["livez", ["ping", "log", "etcd", ...COMMON]],
  ["readyz", [
    "ping",
    "log",
    "etcd",
    "etcd-readiness",
    "informer-sync",
    ...COMMON,
    "shutdown",
  ]],
]);

/**
 * Answers `/healthz`, `/livez` and `/readyz` and their single checks, which all
 * succeed: a server that answers has its store and its controllers.
 */
export function healthResponse(
  path: string,
  query: URLSearchParams,
): ServerResponse {
  const [, endpoint = "", check] = /^\/(\w+)(?:\/(.+?))?\/?$/.exec(path) ?? [];
  const checks = CHECKS.get(endpoint) ?? [];
  if (check !== undefined) {
    return checks.includes(check) ? textResponse(200, "ok") : pageNotFound();
  }
  if (!query.has("verbose")) return textResponse(200, "ok");
  const excluded = query.getAll("exclude");
  const unknown = excluded.filter((name) => !checks.includes(name));
  const lines = checks.map((name) =>
    excluded.includes(name) ? `[+]${name} excluded: ok` : `[+]${name} ok`
  );
  if (unknown.length > 0) {
    const names = unknown.map((name) => JSON.stringify(name)).join(", ");
    lines.push(
      `warn: some health checks cannot be excluded: no matches for ${names}`,
    );
  }
  return textResponse(200, `${lines.join("\n")}\n${endpoint} check passed\n`);
}
