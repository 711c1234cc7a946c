import { CERT_MANAGER_DIRECTORY } from "@coracle/operator/internal";
import type { OperatorDescription } from "./operator_description.ts";
import { API_SERVER, LOG_DIRECTORY } from "./operator_deployment.ts";

/** Folder of the service account in a pod. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Files that tell the memory limit of the pod. */
const MEMORY_FILES = ["/proc/self/cgroup", "/sys/fs/cgroup"];

/** Variables that an operator reads. */
const VARIABLES = [
  "KUBECONFIG",
  "KUBERNETES_SERVICE_HOST",
  "KUBERNETES_SERVICE_PORT",
  ...["HTTPS_PROXY", "NO_PROXY"].flatMap((name) => [name, name.toLowerCase()]),
  ...["LEVEL", "FORMAT", "SAMPLING", "DIRECTORY"].map((name) =>
    `CORACLE_OPERATOR_LOG_${name}`
  ),
  // Libraries read them: undici, ws and yaml.
  "UNDICI_NO_WASM_SIMD",
  "UNDICI_USE_MILO",
  "JEST_WORKER_ID",
  "WS_NO_BUFFER_UTIL",
  "WS_NO_UTF_8_VALIDATE",
  "LOG_TOKENS",
  "LOG_STREAM",
];

/**
 * Permissions of Deno that operators need in a pod, as flags: what they do
 * themselves, and nothing that reconcilers call, read or write besides.
 */
export function denoPermissions(
  operators: readonly OperatorDescription[],
): readonly string[] {
  const net = [`${API_SERVER}:443`];
  const read = [SERVICE_ACCOUNT, LOG_DIRECTORY, ...MEMORY_FILES];
  const write: string[] = [];
  const run: string[] = [];
  for (const { settings } of operators) {
    const { probes, webhooks, cache, programs = [] } = settings;
    run.push(...programs);
    if (probes !== undefined) net.push(placeOf(probes));
    if (probes?.metrics.secure) {
      net.push(placeOf(probes.metrics));
      read.push(...pathsOf(probes.metrics.certificates));
    }
    if (webhooks !== undefined && !("serve" in webhooks)) {
      const { host, port, service, certificates } = webhooks;
      net.push(placeOf({ host, port }));
      // It calls itself, to know when others can.
      const isAny = host === "0.0.0.0" || host === "::";
      net.push(placeOf({ host: isAny ? "127.0.0.1" : host, port }));
      if (service !== undefined) {
        const { name, namespace = "NAMESPACE" } = service;
        net.push(`${name}.${namespace}.svc:${service.port ?? 443}`);
      }
      read.push(...pathsOf(certificates));
    }
    for (const path of [cache?.snapshot?.path, settings.record?.path]) {
      if (path === undefined) continue;
      read.push(path);
      write.push(path);
    }
  }
  const flag = (name: string, values: readonly string[]) =>
    values.length === 0 ? [] : [`--allow-${name}=${[...new Set(values)]}`];
  return [
    ...flag("net", net),
    // A program gets all variables, and Deno gives none that it may not read.
    ...run.length > 0 ? ["--allow-env"] : flag("env", VARIABLES),
    ...flag("read", read),
    ...flag("write", write),
    ...flag("run", run),
    ...flag("sys", ["hostname", "systemMemoryInfo"]),
  ];
}

/** Address as Deno reads it, with brackets around one of IPv6. */
function placeOf(
  { host, port }: { readonly host: string; readonly port: number },
): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Paths of the certificates of a server. */
function pathsOf(certificates: unknown): readonly string[] {
  if (certificates === "cert-manager") return [CERT_MANAGER_DIRECTORY];
  return typeof certificates === "object" && certificates !== null
    ? Object.values(certificates).filter((path) => typeof path === "string")
    : [];
}
