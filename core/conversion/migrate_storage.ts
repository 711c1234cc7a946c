/**
 * Storage migration: rewrites the stored objects of a kind in its storage version,
 * so that the earlier versions can be removed from its definition.
 *
 * @module
 */
import { ApiError, ifFound } from "../api/api_error.ts";
import { builtIn, type ResolvedKind, untyped } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Client } from "../client/client.ts";
import { type Clock, sleep } from "../clock.ts";
import { CRD_KIND, type CrdObject } from "../crd/crd_object.ts";
import { failureOf, storedVersionOf } from "./unconverted.ts";

/** Options of {@linkcode migrateStorage}. */
export interface MigrateOptions {
  /** Clock of the pauses. */
  readonly clock: Clock;
  /** Signal that ends the migration. */
  readonly signal: AbortSignal;
  /** Maximum number of objects written in a second. */
  readonly rate: number;
  /** Callback for the progress, in whole sentences. */
  readonly say?: ((text: string) => void) | undefined;
}

/** Result of {@linkcode migrateStorage}. */
export interface Migration {
  /** Version in which all objects are stored now. */
  readonly version: string;
  /** Versions in which some may have been stored before. */
  readonly before: readonly string[];
  /** Number of objects written by this process; 0 if the server has done it. */
  readonly written: number;
}

/** Migration that an API server carries out. */
interface StorageVersionMigration extends KubernetesObject {
  spec: {
    readonly resource: { readonly group: string; readonly resource: string };
  };
  status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message?: string;
    }[];
  };
}

const SERVER_MIGRATION: ResolvedKind<StorageVersionMigration> = builtIn(
  "StorageVersionMigration",
  "Cluster",
  "storagemigration.k8s.io",
);

/** Pause between reads of a migration by the server, in milliseconds. */
const POLL_MS = 1_000;
/** Number of reads that wait for a server to begin, and to end what is done. */
const MOST_IDLE_READS = 30;
/** Number of objects that a failed migration names. */
const MOST_NAMED = 5;

/**
 * Rewrites all objects of a custom kind in its storage version, and then removes
 * the other versions from `status.storedVersions` of its definition. An empty patch
 * of each object, page by page, does it: the server rewrites an object that is
 * stored in another version. An object that could not be converted before is
 * converted again. Where the server serves StorageVersionMigration (on by default
 * from Kubernetes 1.37), only those objects are patched and the server rewrites the
 * others, unless it does not begin within half a minute: its controller may be off.
 *
 * @param name Name of the definition, such as `boats.sample.example.com`.
 * @throws {ApiError} If there is no such definition, or a right is missing.
 * @throws {Error} If an object cannot be rewritten, or the storage version changes
 * in the meantime; the stored versions stay then.
 */
export async function migrateStorage(
  client: Client,
  name: string,
  options: MigrateOptions,
): Promise<Migration> {
  const { signal, say = () => {} } = options;
  const crd = await client.get(CRD_KIND, { name }, { signal });
  const version = storageVersion(crd);
  const before = crd.status?.storedVersions ?? [];
  const isDone = before.every((stored) => stored === version);
  if (isDone) return { version, before, written: 0 };
  say(`Stored in ${before.join(" and ")}, to be stored in ${version}.`);
  let written = 0;
  const served = await servesMigrations(client);
  // The server would store what could not be converted, and report a success.
  if (served) written += await rewrite(client, crd, options, { all: false });
  if (!served || !await serverMigrates(client, crd, options)) {
    written += await rewrite(client, crd, options, { all: true });
  }
  await trim(client, crd, version, signal);
  return { version, before, written };
}

function storageVersion({ metadata, spec }: CrdObject): string {
  const stored = spec.versions.find(({ storage }) => storage);
  if (stored !== undefined) return stored.name;
  throw new Error(
    `Cannot migrate ${metadata.name}: its definition has no storage version`,
  );
}

async function servesMigrations(client: Client): Promise<boolean> {
  // Of a kind that is known, the client would not ask the discovery.
  const { group, version, kind } = SERVER_MIGRATION;
  const asked = untyped({ group, version, kind });
  const served = await ifFound((async () => await client.resolve(asked))());
  return served !== undefined;
}

/**
 * Lets the server migrate, and waits for it; false if it does not begin. What has
 * succeeded is removed, and what has failed is kept.
 */
async function serverMigrates(
  client: Client,
  { metadata, spec }: CrdObject,
  { signal, clock, say }: MigrateOptions,
): Promise<boolean> {
  const resource = { group: spec.group, resource: spec.names.plural };
  const { metadata: { name } } = await client.create(SERVER_MIGRATION, {
    metadata: { name: "", generateName: `${spec.names.plural}-` },
    spec: { resource },
  }, { signal });
  say?.(`The server migrates them: StorageVersionMigration ${name}.`);
  let readsAtEnd = 0;
  for (let reads = 1;; reads++) {
    const { status } = await client.get(SERVER_MIGRATION, { name }, { signal });
    const { conditions = [] } = status ?? {};
    const found = (type: string) =>
      conditions.find((one) => one.type === type && one.status === "True");
    const failed = found("Failed");
    if (failed !== undefined) {
      throw new Error(
        `Cannot migrate ${metadata.name}: the server has failed: received ${
          failed.message ?? "no message"
        }`,
      );
    }
    // What still runs has the definition to change.
    if (found("Succeeded") !== undefined) {
      const runs = found("Running") !== undefined;
      if (!runs || ++readsAtEnd > MOST_IDLE_READS) {
        await ifFound(client.delete(SERVER_MIGRATION, { name }, { signal }));
        return true;
      }
    }
    if (conditions.length === 0 && reads > MOST_IDLE_READS) {
      await client.delete(SERVER_MIGRATION, { name }, { signal });
      say?.("The server has not begun, so they are written from here.");
      return false;
    }
    await sleep(POLL_MS, { clock, signal });
  }
}

/**
 * Writes objects without a change: all, or those that could not be converted.
 *
 * @returns Their number.
 */
async function rewrite(
  client: Client,
  { metadata, spec }: CrdObject,
  { signal, clock, rate, say }: MigrateOptions,
  { all }: { readonly all: boolean },
): Promise<number> {
  const kindOf = (version: string) =>
    untyped({
      group: spec.group,
      version,
      kind: spec.names.kind,
      plural: spec.names.plural,
      scope: spec.scope,
    });
  const served =
    spec.versions.find(({ storage, served }) => storage && served) ??
      spec.versions.find(({ served }) => served);
  if (served === undefined) {
    throw new Error(
      `Cannot migrate ${metadata.name}: none of its versions is served`,
    );
  }
  const kind = kindOf(served.name);
  const refused: string[] = [];
  let written = 0;
  for await (const object of client.listAll(kind, { signal })) {
    const { name, namespace } = object.metadata;
    const key = namespace === undefined ? { name } : { name, namespace };
    const shown = [namespace, name].filter(Boolean).join("/");
    // Stored under its own version: converting it once more may succeed.
    const original = storedVersionOf(object);
    if (!all && original === undefined) continue;
    try {
      const result = await client.patch(
        original === undefined ? kind : kindOf(original),
        key,
        {},
        { signal },
      );
      const still = original === undefined
        ? failureOf(result)
        : failureOf(await client.get(kind, key, { signal }));
      if (still !== undefined) refused.push(`${shown}: ${still}`);
      written++;
    } catch (error) {
      if (!ApiError.is(error)) throw error;
      if (error.isNotFound) continue;
      if (error.status === 401 || error.status === 403) throw error;
      refused.push(`${shown}: ${error.message}`);
    }
    if (written % 100 === 0) say?.(`${written} objects written.`);
    await sleep(1_000 / rate, { clock, signal });
  }
  if (refused.length === 0) return written;
  const more = refused.length - MOST_NAMED;
  throw new Error(
    `Cannot migrate ${metadata.name}: mend what the server refuses, and repeat: received ${
      refused.slice(0, MOST_NAMED).join("; ")
    }${more > 0 ? `; and ${more} more` : ""}`,
  );
}

/** Leaves only the storage version in the status of the definition. */
async function trim(
  client: Client,
  { metadata: { name, generation } }: CrdObject,
  version: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const { metadata, status } = await client.get(CRD_KIND, { name }, {
      signal,
    });
    if (metadata.generation !== generation) {
      throw new Error(
        `Cannot migrate ${name}: its definition has changed in the meantime; repeat it`,
      );
    }
    // A server that has migrated does it too, at the same time.
    if (status?.storedVersions?.join() === version) return;
    try {
      await client.status.patch(CRD_KIND, { name }, {
        metadata: { resourceVersion: metadata.resourceVersion },
        status: { storedVersions: [version] },
      }, { signal });
      return;
    } catch (error) {
      if (!ApiError.is(error) || !error.isConflict) throw error;
    }
  }
}
