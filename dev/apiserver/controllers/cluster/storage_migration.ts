/**
 * Controller of StorageVersionMigrations: rewrites the objects of a resource, so
 * that all are stored in its present storage version.
 *
 * @module
 */
import { setImmediate } from "node:timers";
import type { KubernetesObject, ResolvedKind } from "@coracle/operator/client";
import { apiVersionOf, builtIn, CRD_KIND } from "@coracle/operator/internal";
import type { ResourceDefinition } from "../../registry.ts";
import { settle } from "../../settle.ts";
import { StatusError } from "../../status.ts";
import type { StoredObject } from "../../storage/stored_object.ts";
import { patchApplied } from "../../write/patch.ts";
import { updateObject } from "../../write/update.ts";
import type { Condition } from "../conditions.ts";
import type { ControllerApi } from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { internalRequest, internalWrite } from "../internal_request.ts";

/** Migration of the stored objects of a resource. */
interface StorageVersionMigration extends KubernetesObject {
  readonly spec: {
    readonly resource: { readonly group?: string; readonly resource: string };
  };
  status?: {
    readonly resourceVersion?: string;
    readonly conditions?: readonly MigrationCondition[];
  };
}

interface MigrationCondition extends Condition {
  observedGeneration?: number | undefined;
}

const MIGRATIONS: ResolvedKind<StorageVersionMigration> = builtIn(
  "StorageVersionMigration",
  "Cluster",
  "storagemigration.k8s.io",
);

const NAME = "storage-version-migrator-controller";
/** Type of the condition of a definition whose objects are rewritten. */
const MIGRATING = "StorageMigrating";
/** Field manager of what the controller writes into definitions. */
const RUNNER = "migration-runner-controller";
/** Time in which a resource may appear after its migration, in milliseconds. */
const APPEARS_MS = 60_000;
/** Pause between two looks for a resource, in milliseconds. */
const LOOK_MS = 1_000;
/** Number of objects rewritten before other tasks of the event loop run. */
const SLICE = 64;
const VERBS = ["update", "patch", "list"] as const;
/** Statuses of errors after which a migration is tried again. */
const RETRIABLE: readonly number[] = [429, 500, 503, 504];

/** Controller of StorageVersionMigrations; one of a resource runs at a time. */
export const STORAGE_MIGRATIONS: ControllerDefinition = {
  name: NAME,
  kind: MIGRATIONS,
  watches: [{
    kind: MIGRATIONS,
    *keys({ object }, api) {
      const changed = object.parse() as KubernetesObject;
      for (const other of others(changed as StorageVersionMigration, api)) {
        yield other.metadata.name;
      }
    },
  }],
  async sync(object, api) {
    const migration = object as StorageVersionMigration;
    const isEnded = is(migration, "Succeeded") || is(migration, "Failed");
    if (!is(migration, "Running")) {
      if (!isEnded && isNext(migration, api)) await begin(migration, api);
    } else if (isEnded) await end(migration, api);
    else if (migration.status?.resourceVersion) {
      return await run(migration, api);
    } else return await prepare(migration, api);
    return undefined;
  },
};

function is({ status }: StorageVersionMigration, type: string): boolean {
  return status?.conditions?.some((condition) =>
    condition.type === type && condition.status === "True"
  ) === true;
}

/** The other migrations of the same resource. */
function others(
  { metadata, spec: { resource } }: StorageVersionMigration,
  api: ControllerApi,
): readonly StorageVersionMigration[] {
  return api.list(MIGRATIONS, undefined).filter((other) =>
    other.metadata.uid !== metadata.uid &&
    other.spec.resource.resource === resource.resource &&
    (other.spec.resource.group ?? "") === (resource.group ?? "")
  );
}

/** Whether no other migration of the resource runs, or was created before. */
function isNext(
  migration: StorageVersionMigration,
  api: ControllerApi,
): boolean {
  const age = ({ metadata }: StorageVersionMigration) =>
    `${metadata.creationTimestamp} ${metadata.name}`;
  return others(migration, api).every((other) => {
    if (is(other, "Succeeded") || is(other, "Failed")) return true;
    return !is(other, "Running") && age(migration) < age(other);
  });
}

/** Marks a migration and the definition of its resource as running. */
async function begin(
  migration: StorageVersionMigration,
  api: ControllerApi,
): Promise<void> {
  await markDefinition(migration, api, () => ({
    status: "True",
    reason: "MigrationRunning",
    message: `Migration ${migration.metadata.name} is running`,
  }));
  await write(migration, api, [running(api)]);
}

/** Notes up to which resourceVersion objects are rewritten. */
async function prepare(
  migration: StorageVersionMigration,
  api: ControllerApi,
): Promise<number | undefined> {
  const definition = resourceOf(migration, api);
  if (definition === undefined) {
    if (isYoung(migration, api)) return LOOK_MS;
    await fail(migration, api, "resource does not exist in discovery");
    return undefined;
  }
  if (!VERBS.every((verb) => definition.verbs.includes(verb))) {
    const { group, plural, versions: [preferred] } = definition;
    await fail(
      migration,
      api,
      `resource "${group}/${preferred?.name}, Resource=${plural}" does not support discovery operations: [${
        VERBS.join(" ")
      }]`,
    );
    return undefined;
  }
  await api.setStatus(MIGRATIONS, migration, {
    ...migration.status,
    resourceVersion: String(api.context.store.revision),
  });
  return undefined;
}

/** Rewrites the objects of a migration. */
async function run(
  migration: StorageVersionMigration,
  api: ControllerApi,
): Promise<number | undefined> {
  const definition = resourceOf(migration, api);
  if (definition === undefined) {
    if (isYoung(migration, api)) return LOOK_MS;
    const why = "unable to obtain GVR from discovery";
    await fail(migration, api, unhandled(why));
    return undefined;
  }
  if (isIgnored(definition)) {
    if (isYoung(migration, api)) return LOOK_MS;
    const why = "resource does not exist in GC: %!w(<nil>)";
    await fail(migration, api, unhandled(why));
    return undefined;
  }
  const last = Number(migration.status?.resourceVersion);
  const all = [...api.context.store.collectionOf(definition).values()];
  const old = all.filter(({ revision }) => revision <= last);
  for (const [done, stored] of old.entries()) {
    const error = await rewrite(stored, definition, api);
    if (error !== undefined) {
      const left = old.length - done;
      const { code } = error.status;
      if (RETRIABLE.includes(code)) {
        await write(migration, api, [running(api, left, all.length, error)]);
        throw error;
      }
      await write(migration, api, [
        running(api, left, all.length),
        failed(
          api,
          `${left}/${all.length} not yet migrated. ${unhandled(error.message)}`,
        ),
      ]);
      return undefined;
    }
    if (done % SLICE === SLICE - 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
  await write(migration, api, [running(api, 0, all.length), {
    type: "Succeeded",
    status: "True",
    lastTransitionTime: api.time,
    reason: "StorageVersionMigrationSucceeded",
    message: "Migration completed",
  }]);
  return undefined;
}

/**
 * Writes an object without a change, so that it is stored again.
 *
 * @returns The error, unless somebody else has written or deleted the object.
 */
async function rewrite(
  { namespace, name, revision }: StoredObject,
  definition: ResourceDefinition,
  { context }: ControllerApi,
): Promise<StatusError | undefined> {
  const request = internalRequest(context, definition, { namespace, name });
  const [preferred = request.version] = definition.versions.filter(
    ({ served }) => served,
  );
  try {
    await settle(() =>
      updateObject({ ...request, version: preferred }, {
        options: internalWrite(NAME),
        next: (live) => {
          live.metadata.resourceVersion = String(revision);
          return live;
        },
      })
    );
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    if (error.status.code !== 409 && error.status.code !== 404) return error;
  }
  return undefined;
}

/** Marks an ended migration and the definition of its resource as not running. */
async function end(
  migration: StorageVersionMigration,
  api: ControllerApi,
): Promise<void> {
  const isDone = is(migration, "Succeeded");
  await markDefinition(migration, api, (isUnchanged) => ({
    status: "False",
    reason: isDone ? "MigrationSucceeded" : "MigrationFailed",
    message: !isDone
      ? "The migration has failed"
      : isUnchanged
      ? "The migration has succeeded and the stored versions have been updated"
      : "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
    trims: isUnchanged,
  }));
  await write(migration, api, [{
    type: "Running",
    status: "False",
    observedGeneration: migration.metadata.generation,
    lastTransitionTime: api.time,
    reason: "MigrationCompleted",
    message: "Migration completed",
  }]);
}

/** Sets the condition StorageMigrating of the definition of a custom resource. */
async function markDefinition(
  { spec: { resource: { group = "", resource } } }: StorageVersionMigration,
  api: ControllerApi,
  conditionOf: (isUnchanged: boolean) => {
    readonly status: string;
    readonly reason: string;
    readonly message: string;
    /** Whether only the storage version stays among the stored ones. */
    readonly trims?: boolean;
  },
): Promise<void> {
  const { context } = api;
  const crd = api.get(CRD_KIND, { name: `${resource}.${group}` });
  const definition = context.resources.find(CRD_KIND.group, CRD_KIND.plural);
  if (crd === undefined || definition === undefined) return;
  const { metadata: { name, generation, resourceVersion }, spec } = crd;
  const before = crd.status?.conditions?.find(({ type }) => type === MIGRATING);
  const { trims = false, ...condition } = conditionOf(
    (before as MigrationCondition | undefined)?.observedGeneration ===
      generation,
  );
  const storage = spec.versions.find((version) => version.storage)?.name;
  const value = {
    apiVersion: apiVersionOf(CRD_KIND),
    kind: CRD_KIND.kind,
    metadata: { name, resourceVersion },
    status: {
      conditions: [{
        type: MIGRATING,
        ...condition,
        lastTransitionTime: api.time,
        observedGeneration: generation,
      }],
      ...trims && storage !== undefined ? { storedVersions: [storage] } : {},
    },
  };
  await settle(() =>
    patchApplied(
      internalRequest(context, definition, {
        namespace: "",
        name,
        subresource: "status",
      }),
      {
        patch: { type: "apply", value, warnings: [], objections: [] },
        options: { ...internalWrite(RUNNER), force: true },
      },
    )
  );
}

function resourceOf(
  { spec: { resource: { group = "", resource } } }: StorageVersionMigration,
  { context: { resources } }: ControllerApi,
): ResourceDefinition | undefined {
  return resources.find(group, resource);
}

/** Whether garbage collection, which holds the objects for it, ignores a resource. */
function isIgnored({ group, plural }: ResourceDefinition): boolean {
  return plural === "events" && (group === "" || group === "events.k8s.io");
}

/** Whether a resource that is not served may still appear. */
function isYoung(
  { metadata: { creationTimestamp = "" } }: StorageVersionMigration,
  { now }: ControllerApi,
): boolean {
  return Date.parse(creationTimestamp) + APPEARS_MS > now;
}

/**
 * Condition of a running migration.
 *
 * @param left Number of objects that are not rewritten yet.
 */
function running(
  { time }: ControllerApi,
  left = 0,
  all = 0,
  error?: StatusError,
): MigrationCondition {
  const count = all === 0
    ? ""
    : left > 0
    ? `, ${left}/${all} objects not yet migrated`
    : `, ${all} objects verified migrated`;
  const trouble = error === undefined
    ? ""
    : `; transient error: ${error.message}`;
  return {
    type: "Running",
    status: "True",
    lastTransitionTime: time,
    reason: "MigrationRunning",
    message: `The migration is running${count}${trouble}`,
  };
}

function failed({ time }: ControllerApi, message: string): MigrationCondition {
  return {
    type: "Failed",
    status: "True",
    lastTransitionTime: time,
    reason: "StorageVersionMigrationFailed",
    message,
  };
}

function unhandled(why: string): string {
  return `migration encountered unhandled error: ${why}`;
}

async function fail(
  migration: StorageVersionMigration,
  api: ControllerApi,
  message: string,
): Promise<void> {
  await write(migration, api, [failed(api, message)]);
}

/** Sets conditions, each in its place; the transition time changes only with the status. */
async function write(
  migration: StorageVersionMigration,
  api: ControllerApi,
  changed: readonly MigrationCondition[],
): Promise<void> {
  const conditions = [...migration.status?.conditions ?? []];
  for (const condition of changed) {
    const at = conditions.findIndex(({ type }) => type === condition.type);
    const before = conditions[at];
    if (before === undefined) conditions.push(condition);
    else {
      conditions[at] = before.status === condition.status
        ? { ...condition, lastTransitionTime: before.lastTransitionTime }
        : condition;
    }
  }
  await api.setStatus(MIGRATIONS, migration, {
    ...migration.status,
    conditions,
  });
}
