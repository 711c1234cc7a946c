import * as z from "zod/mini";
import type { FromFile, Kubeconfig } from "./kubeconfig.ts";

const TEXT = z.optional(z.string());
const FLAG = z.optional(z.boolean());
const TEXTS = z.optional(z.array(z.string()));

const CLUSTER = z.object({
  server: TEXT,
  "certificate-authority": TEXT,
  "certificate-authority-data": TEXT,
  "tls-server-name": TEXT,
  "insecure-skip-tls-verify": FLAG,
  "proxy-url": TEXT,
  extensions: z.optional(
    z.array(z.object({ name: z.string(), extension: z.unknown() })),
  ),
});

const EXEC = z.object({
  apiVersion: TEXT,
  command: TEXT,
  args: TEXTS,
  env: z.optional(
    z.array(z.object({ name: z.string(), value: z.string() })),
  ),
  installHint: TEXT,
  provideClusterInfo: FLAG,
  interactiveMode: TEXT,
});

const USER = z.object({
  "client-certificate": TEXT,
  "client-certificate-data": TEXT,
  "client-key": TEXT,
  "client-key-data": TEXT,
  token: TEXT,
  tokenFile: TEXT,
  username: TEXT,
  password: TEXT,
  as: TEXT,
  "as-uid": TEXT,
  "as-groups": TEXTS,
  "as-user-extra": z.optional(z.record(z.string(), z.array(z.string()))),
  exec: z.optional(EXEC),
  "auth-provider": z.optional(z.object({ name: TEXT })),
});

const CONTEXT = z.object({ cluster: TEXT, user: TEXT, namespace: TEXT });

const KUBECONFIG = z.object({
  kind: z.optional(z.literal("Config")),
  apiVersion: z.optional(z.literal("v1")),
  "current-context": TEXT,
  clusters: z.optional(
    z.array(z.object({ name: z.string(), cluster: z.optional(CLUSTER) })),
  ),
  contexts: z.optional(
    z.array(z.object({ name: z.string(), context: z.optional(CONTEXT) })),
  ),
  users: z.optional(
    z.array(z.object({ name: z.string(), user: z.optional(USER) })),
  ),
});

/** Where a kubeconfig was read from. */
export interface KubeconfigOrigin {
  /** The file, as a person named it. */
  readonly file: string;
  /** The folder that its relative paths start from. */
  readonly folder: string;
}

/**
 * Checks the shape of a kubeconfig. Fields that it does not know are left out,
 * as kubectl does.
 *
 * @param document What the file holds, as decoded YAML.
 * @param origin Where it was read from.
 * @throws {TypeError} If a field has the wrong type or a name stands twice; the
 * error names file, field and what is expected, and no value.
 */
export function checkKubeconfig(
  document: unknown,
  origin: KubeconfigOrigin,
): Kubeconfig {
  const value = withoutNulls(document);
  const result = z.safeParse(KUBECONFIG, value);
  if (!result.success) {
    throw new TypeError(issueText(result.error.issues[0], value, origin));
  }
  const { clusters = [], contexts = [], users = [] } = result.data;
  return {
    "current-context": result.data["current-context"],
    clusters: byName(
      "clusters",
      clusters.map(({ name, cluster = {} }) => ({
        name,
        value: cluster,
        path: `clusters[${name}].cluster`,
      })),
      origin,
    ),
    contexts: byName(
      "contexts",
      contexts.map(({ name, context = {} }) => ({
        name,
        value: context,
        path: `contexts[${name}].context`,
      })),
      origin,
    ),
    users: byName(
      "users",
      users.map(({ name, user = {} }) => ({
        name,
        value: user,
        path: `users[${name}].user`,
      })),
      origin,
    ),
  };
}

/** kubectl writes `null` for what is empty, and takes it for absent. */
function withoutNulls(value: unknown): unknown {
  if (value === null) return undefined;
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).filter(([, item]) => item !== null)
      .map(([name, item]) => [name, withoutNulls(item)]),
  );
}

function byName<T>(
  part: string,
  entries: readonly { name: string; value: T; path: string }[],
  origin: KubeconfigOrigin,
): Map<string, FromFile<T>> {
  const map = new Map<string, FromFile<T>>();
  for (const { name, value, path } of entries) {
    if (map.has(name)) {
      throw new TypeError(
        `Cannot read kubeconfig ${origin.file}: the names in "${part}" must differ: received "${name}" twice`,
      );
    }
    map.set(name, { value, path, ...origin });
  }
  return map;
}

function issueText(
  issue: z.core.$ZodIssue | undefined,
  document: unknown,
  { file }: KubeconfigOrigin,
): string {
  let path = "";
  let value = document;
  for (const step of issue?.path ?? []) {
    value = at(value, step);
    const name = at(value, "name");
    if (typeof step !== "number") path += `${path && "."}${String(step)}`;
    else path += `[${typeof name === "string" ? name : step}]`;
  }
  const expected = issue?.code === "invalid_type"
    ? `be of type ${issue.expected}`
    : issue?.code === "invalid_value"
    ? `be "${String(issue.values[0])}"`
    : "be valid";
  return `Cannot read kubeconfig ${file}: ${
    path === "" ? "the document" : `"${path}"`
  } must ${expected}: received ${typeOf(value)}`;
}

function at(value: unknown, step: PropertyKey): unknown {
  return typeof value === "object" && value !== null
    ? Reflect.get(value, step)
    : undefined;
}

/** The type alone: a value may be a secret. */
function typeOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "a map" : `a ${typeof value}`;
}
