/**
 * Content of kubeconfigs, with the field names of kubectl, and its merging.
 *
 * @module
 */
import { isAbsolute, resolve } from "node:path";
import { escaped } from "../api/input.ts";

/** Cluster entry of a kubeconfig: how to reach and to verify its server. */
export interface KubeconfigCluster {
  readonly server?: string | undefined;
  readonly "certificate-authority"?: string | undefined;
  readonly "certificate-authority-data"?: string | undefined;
  readonly "tls-server-name"?: string | undefined;
  readonly "insecure-skip-tls-verify"?: boolean | undefined;
  readonly "proxy-url"?: string | undefined;
  readonly extensions?:
    | readonly { readonly name: string; readonly extension?: unknown }[]
    | undefined;
}

/** Context entry of a kubeconfig: cluster, user and namespace. */
export interface KubeconfigContext {
  readonly cluster?: string | undefined;
  readonly user?: string | undefined;
  readonly namespace?: string | undefined;
}

/** Exec plugin of a user: a program that provides credentials. */
export interface KubeconfigExec {
  readonly apiVersion?: string | undefined;
  readonly command?: string | undefined;
  readonly args?: readonly string[] | undefined;
  readonly env?:
    | readonly { readonly name: string; readonly value?: string | undefined }[]
    | undefined;
  readonly installHint?: string | undefined;
  readonly provideClusterInfo?: boolean | undefined;
  readonly interactiveMode?: string | undefined;
}

/** User entry of a kubeconfig: credentials and impersonation. */
export interface KubeconfigUser {
  readonly "client-certificate"?: string | undefined;
  readonly "client-certificate-data"?: string | undefined;
  readonly "client-key"?: string | undefined;
  readonly "client-key-data"?: string | undefined;
  readonly token?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly as?: string | undefined;
  readonly "as-uid"?: string | undefined;
  readonly "as-groups"?: readonly string[] | undefined;
  readonly "as-user-extra"?:
    | Readonly<Record<string, readonly string[]>>
    | undefined;
  readonly "auth-provider"?: { readonly name?: string | undefined } | undefined;
  readonly exec?: KubeconfigExec | undefined;
}

/** Content of one kubeconfig file, or of several merged ones. */
export interface Kubeconfig {
  readonly "current-context"?: string | undefined;
  /** Clusters by name. */
  readonly clusters: ReadonlyMap<string, FromFile<KubeconfigCluster>>;
  /** Contexts by name. */
  readonly contexts: ReadonlyMap<string, FromFile<KubeconfigContext>>;
  /** Users by name. */
  readonly users: ReadonlyMap<string, FromFile<KubeconfigUser>>;
}

export interface KubeconfigOrigin {
  /** Path of the file as the user gave it, for errors. */
  readonly file: string;
  /** Folder that relative paths in the file refer to. */
  readonly folder: string;
}

/** Entry of a kubeconfig with its origin. */
export interface FromFile<T> extends KubeconfigOrigin {
  readonly value: T;
  /** Path of the entry within the file, such as `users[admin].user`. */
  readonly path: string;
}

/** Formats the location of a field, for errors: `file: "users[a].user.token"`. */
export function fieldText(entry: FromFile<unknown>, field: string): string {
  return `${entry.file}: "${escaped(entry.path)}.${field}"`;
}

/** Resolves a path in a kubeconfig relative to the folder of its file. */
export function pathFrom(entry: FromFile<unknown>, path: string): string {
  return isAbsolute(path) ? path : resolve(entry.folder, path);
}

/**
 * Merges kubeconfigs as kubectl does: for each name, the first file with an entry
 * provides it completely; the first file with a current context provides that.
 */
export function mergeKubeconfigs(files: readonly Kubeconfig[]): Kubeconfig {
  return {
    "current-context": files.map((file) => file["current-context"])
      .find((name) => name),
    clusters: firstOfEach(files.map(({ clusters }) => clusters)),
    contexts: firstOfEach(files.map(({ contexts }) => contexts)),
    users: firstOfEach(files.map(({ users }) => users)),
  };
}

/**
 * Whether the context of a kubeconfig leads to a cluster, or to an error. Without a
 * context, or if there is no entry of its cluster, client-go uses the service
 * account of a pod.
 *
 * @param context Name of the context; the current one if absent.
 */
export function namesCluster(
  kubeconfig: Kubeconfig,
  context: string | undefined,
): boolean {
  const name = context ?? kubeconfig["current-context"];
  if (!name) return false;
  const found = kubeconfig.contexts.get(name);
  return found === undefined ||
    kubeconfig.clusters.has(found.value.cluster ?? "");
}

function firstOfEach<T>(
  maps: readonly ReadonlyMap<string, T>[],
): ReadonlyMap<string, T> {
  return new Map(maps.toReversed().flatMap((map) => [...map]));
}
