/**
 * What a kubeconfig file says, in kubectl's own names: the types, and the merge
 * of several files. Nothing here reads a file.
 *
 * @module
 */

/** A cluster of a kubeconfig. */
export interface KubeconfigCluster {
  readonly server?: string | undefined;
  readonly "certificate-authority"?: string | undefined;
  readonly "certificate-authority-data"?: string | undefined;
  readonly "tls-server-name"?: string | undefined;
  readonly "insecure-skip-tls-verify"?: boolean | undefined;
  readonly "proxy-url"?: string | undefined;
  readonly extensions?: readonly NamedExtension[] | undefined;
}

/** A part of a kubeconfig for other tools; one of them is for exec plug-ins. */
export interface NamedExtension {
  readonly name: string;
  readonly extension?: unknown;
}

/** How a program gives credentials. */
export interface KubeconfigExec {
  readonly apiVersion?: string | undefined;
  readonly command?: string | undefined;
  readonly args?: readonly string[] | undefined;
  readonly env?:
    | readonly { readonly name: string; readonly value: string }[]
    | undefined;
  readonly installHint?: string | undefined;
  readonly provideClusterInfo?: boolean | undefined;
  readonly interactiveMode?: string | undefined;
}

/** A user of a kubeconfig. */
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
  readonly exec?: KubeconfigExec | undefined;
  readonly "auth-provider"?: { readonly name?: string | undefined } | undefined;
}

/** Which user works in which cluster. */
export interface KubeconfigContext {
  readonly cluster?: string | undefined;
  readonly user?: string | undefined;
  readonly namespace?: string | undefined;
}

/** One kubeconfig file. */
export interface Kubeconfig {
  readonly "current-context"?: string | undefined;
  readonly clusters: ReadonlyMap<string, FromFile<KubeconfigCluster>>;
  readonly contexts: ReadonlyMap<string, FromFile<KubeconfigContext>>;
  readonly users: ReadonlyMap<string, FromFile<KubeconfigUser>>;
}

/** An entry, and where it stands, for errors and for paths relative to it. */
export interface FromFile<T> {
  readonly value: T;
  /** The file, as a person named it. */
  readonly file: string;
  /** The folder that its relative paths start from. */
  readonly folder: string;
  /** The entry's path within the file, such as `users[admin].user`. */
  readonly path: string;
}

/**
 * Merges kubeconfigs as kubectl does: of each name, the first file that has it
 * gives the whole entry, and the first that names a current context gives that.
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

function firstOfEach<T>(
  maps: readonly ReadonlyMap<string, T>[],
): ReadonlyMap<string, T> {
  return new Map(maps.toReversed().flatMap((map) => [...map]));
}
