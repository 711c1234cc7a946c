import type { UntypedObject } from "@coracle/operator/client";
import { crdManifest, type DefinedKind } from "@coracle/operator/crd";
import {
  checkOption,
  isDefinedKind,
  isJsonObject,
  jsonEquals,
  type StatusCause,
} from "@coracle/operator/internal";
import { loadPatterns } from "../apiserver/cel/pattern.ts";
import { customResourceDefinition } from "../apiserver/crd/custom_resources.ts";
import type {
  ConversionDeps,
  HookContext,
  ResourceDefinition,
  ResourceVersion,
} from "../apiserver/registry.ts";
import { badRequest, invalid, StatusError } from "../apiserver/status.ts";
import { readJson } from "../apiserver/exact_json.ts";
import {
  metadataProblems,
  metadataUpdateProblems,
} from "../apiserver/validation/object_meta.ts";

/**
 * Checks an object as an API server does when it is created, or replaces an earlier
 * one: unknown fields, the schema of its version with defaults, metadata, and the CEL
 * rules of the schema, also those of a change. Nothing is started for it. The status
 * is checked as the write of that subresource.
 *
 * @param kind Kind of `defineKind` or `kindFromCrd`.
 * @param object Object of any version of the kind; `apiVersion`, `kind` and
 * `metadata.namespace` may be left out.
 * @param old Object that it replaces. Without it, it is new.
 * @returns Message with which the API server would refuse the object; undefined if it
 * would accept it. Admission is not part of it.
 * @throws {TypeError} If the kind has no definition, or not the version.
 *
 * @example A rule about a change
 * ```ts
 * import { checkObject } from "@coracle/dev";
 * import { defineKind, immutable } from "@coracle/operator/crd";
 * import { z } from "zod";
 *
 * const Disk = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Disk",
 *   spec: z.object({ storageClass: z.string() }),
 *   rules: [immutable(".spec.storageClass")],
 * });
 * const disk = (storageClass: string) => ({
 *   metadata: { name: "a" },
 *   spec: { storageClass },
 * });
 * const message = await checkObject(Disk, disk("slow"), disk("fast"));
 * if (!message?.includes("immutable")) throw new Error(`Unexpected: ${message}`);
 * ```
 */
export async function checkObject(
  kind: DefinedKind,
  object: object,
  old?: object,
): Promise<string | undefined> {
  const subject = "checkObject()";
  if (!isDefinedKind(kind)) {
    throw new TypeError(
      `Cannot check an object: the kind must be one of defineKind() or kindFromCrd(): received ${
        String(Object(kind).kind)
      }`,
    );
  }
  checkOption(object, "object", { name: "object", subject });
  checkOption(old, "object?", { name: "old", subject });
  await loadPatterns();
  const crd = JSON.parse(JSON.stringify(crdManifest(kind)));
  // Conversions are the operator's own, and need no server here.
  delete crd.spec.conversion;
  const definition = customResourceDefinition(crd, {} as ConversionDeps);
  try {
    const next = readObject(definition, object, kind.version);
    if (old === undefined) checkNew(definition, next);
    else {checkUpdate(
        definition,
        next,
        readObject(definition, old, kind.version),
      );}
    return undefined;
  } catch (error) {
    if (error instanceof StatusError) return error.status.message;
    throw error;
  }
}

/** A decoded object with its version. */
interface ReadObject {
  readonly version: ResourceVersion;
  readonly object: UntypedObject;
}

/** Decodes an object and fills in defaults, as of a request with strict validation. */
function readObject(
  { kind, group, scope, versions }: ResourceDefinition,
  given: object,
  standard: string,
): ReadObject {
  // Integers beyond 2^53 are read as the server reads them.
  const plain = readJson(JSON.stringify(given)) as UntypedObject;
  const {
    apiVersion = `${group}/${standard}`,
    kind: name = kind,
    metadata,
    ...fields
  } = plain;
  const version = versions.find((one) => apiVersion === `${group}/${one.name}`);
  if (version === undefined || name !== kind) {
    throw new TypeError(
      `Cannot check an object: it must be a ${kind} of ${
        versions.map((one) => `${group}/${one.name}`).join(" or ")
      }: received ${name} of ${apiVersion}`,
    );
  }
  const decoded = version.decode({
    apiVersion,
    kind,
    metadata: {
      ...scope !== "Cluster" && { namespace: "default" },
      ...metadata,
    },
    ...fields,
  });
  const { problems, object } = decoded;
  if (problems.length > 0) {
    throw badRequest(
      `${kind} in version ${
        JSON.stringify(version.name)
      } cannot be handled as a ${kind}: strict decoding error: ${
        problems.join(", ")
      }`,
    );
  }
  version.setDefaults(object);
  const { metadata: read } = object;
  if (!read.name && read.generateName) {
    read.name = `${read.generateName.slice(0, 58)}00000`;
  }
  // The server clears that of a cluster-scoped object.
  if (scope === "Cluster") delete read.namespace;
  return { version, object };
}

/** Throws what the server answers to the creation of an object, and of its status. */
function checkNew(
  definition: ResourceDefinition,
  { version, object }: ReadObject,
): void {
  const whole = structuredClone(object);
  const context = contextOf(version);
  definition.prepareForCreate?.(object, context);
  refuse(definition, object, [
    ...metadataProblems(object.metadata, definition),
    ...definition.validateCreate?.(object, context) ?? [],
  ]);
  checkStatus(definition, { version, object: whole }, object);
}

/** Throws what the server answers to the update of an object, and of its status. */
function checkUpdate(
  definition: ResourceDefinition,
  { version, object: given }: ReadObject,
  { object: old }: ReadObject,
): void {
  const { apiVersion } = given;
  const live = { ...old, apiVersion, metadata: stored(old.metadata) };
  const system = Object.fromEntries(
    ["uid", "resourceVersion", "creationTimestamp", "generation"]
      .map((name) => [name, Reflect.get(live.metadata, name)]),
  );
  const object = {
    ...given,
    metadata: { ...given.metadata, ...system },
  };
  const whole = structuredClone(object);
  const context = contextOf(version);
  definition.prepareForUpdate?.(object, live, context);
  refuse(definition, object, [
    ...metadataUpdateProblems(object.metadata, live.metadata, definition),
    ...definition.validateUpdate?.(object, live, context) ?? [],
  ]);
  checkStatus(definition, { version, object: whole }, object);
}

/** Metadata with what a server sets. */
function stored(metadata: UntypedObject["metadata"]): typeof metadata {
  return {
    uid: "00000000-0000-4000-8000-000000000000",
    resourceVersion: "1",
    generation: 1,
    creationTimestamp: "2000-01-01T00:00:00Z",
    ...metadata,
  };
}

/** Throws what the server answers to the write of the status of an object. */
function checkStatus(
  definition: ResourceDefinition,
  { version, object }: ReadObject,
  live: UntypedObject,
): void {
  const hasStatus = version.subresources?.some(({ name }) => name === "status");
  if (!hasStatus || !isJsonObject(object.status)) return;
  if (jsonEquals(object.status, live.status)) return;
  const metadata = stored(live.metadata);
  const before = { ...live, metadata };
  const next = { ...before, status: object.status };
  const context = { ...contextOf(version), subresource: "status" };
  refuse(definition, next, [
    ...definition.validateUpdate?.(next, before, context) ?? [],
  ]);
}

function refuse(
  { kind, group }: ResourceDefinition,
  { metadata: { name } }: UntypedObject,
  causes: readonly StatusCause[],
): void {
  if (causes.length > 0) throw invalid({ group, kind, name }, causes);
}

/** Context of the checks of custom resources, which read no other object. */
function contextOf(version: ResourceVersion): HookContext {
  return {
    version: version.name,
    warn() {},
  } as unknown as HookContext;
}
