import type { UntypedObject } from "@coracle/operator/client";
import {
  apiVersionOf,
  compareVersions,
  type CrdObject,
  jsonEquals,
  parseApiVersion,
} from "@coracle/operator/internal";
import type {
  ConversionDeps,
  HookContext,
  ResourceDefinition,
  Verb,
} from "../registry.ts";
import { serverError, type StatusError } from "../status.ts";
import { WebhookConversion } from "./webhook_conversion.ts";
import { CustomVersion } from "./custom_version.ts";

const VERBS: readonly Verb[] = [
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "create",
  "update",
  "watch",
];

/** Resource definition that serves the objects of an accepted CRD. */
export function customResourceDefinition(
  object: UntypedObject,
  deps: ConversionDeps,
): ResourceDefinition {
  const crd = object as unknown as CrdObject;
  const { group, scope } = crd.spec;
  const names = { ...crd.spec.names, ...crd.status?.acceptedNames };
  const versions = crd.spec.versions
    .map((version) => new CustomVersion(crd, version))
    .sort((a, b) => compareVersions(a.name, b.name));
  const storage = crd.spec.versions.find((version) => version.storage);
  const versionOf = (name: string) => {
    const version = versions.find((candidate) => candidate.name === name);
    if (version !== undefined) return version;
    throw unknownVersion(apiVersionOf({ group, version: name }));
  };
  const { conversion } = crd.spec as { conversion?: { strategy?: string } };
  const webhook = conversion?.strategy === "Webhook"
    ? new WebhookConversion(crd, deps)
    : undefined;
  return {
    group,
    scope,
    plural: names.plural,
    singular: names.singular,
    kind: names.kind,
    listKind: names.listKind,
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    verbs: VERBS,
    versions,
    storageVersion: storage?.name ?? "",
    custom: true,
    subresources: [],
    nameRule: "dns-subdomain",
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: false,
    returnsDeletedObject: false,
    hasGeneration: true,
    convert: (object, version) =>
      convert(crd, object, { version: versionOf(version), webhook }),
    ...(webhook && {
      prepareConversion: (objects: readonly UntypedObject[], version: string) =>
        webhook.prepare(objects, apiVersionOf({ group, version })),
    }),
    prepareForCreate(object, { version }) {
      const custom = versionOf(version);
      if (!custom.hasStatus) return;
      delete object.status;
      // The status of the client goes, but not the default of the schema.
      custom.setDefaults(object);
    },
    prepareForUpdate(object, live, context) {
      keepStatus(object, live, versionOf(context.version).hasStatus, context);
    },
    validateCreate: (object, { version }) =>
      versionOf(version).createCauses(object),
    validateUpdate: (object, live, context) =>
      versionOf(context.version).updateCauses(object, live, context),
  };
}

/** Keeps the status of the live object and increments the generation unless only metadata changed. */
function keepStatus(
  object: UntypedObject,
  live: UntypedObject,
  hasStatus: boolean,
  { subresource }: HookContext,
): void {
  if (subresource === "status") {
    // Only managedFields are taken from the write.
    const { managedFields } = object.metadata;
    object.metadata = { ...live.metadata, managedFields };
    return;
  }
  if (hasStatus) {
    if (live.status === undefined) delete object.status;
    else object.status = structuredClone(live.status);
  }
  const { metadata: _, ...next } = object;
  const { metadata, ...before } = live;
  if (!jsonEquals(next, before)) {
    object.metadata.generation = (metadata.generation ?? 0) + 1;
  }
}

/**
 * Converts an object to another version. Without a conversion webhook only
 * `apiVersion` changes. Fields unknown to the schema of that version are
 * dropped.
 */
function convert(
  { spec }: CrdObject,
  object: UntypedObject,
  { version, webhook }: {
    readonly version: CustomVersion;
    readonly webhook: WebhookConversion | undefined;
  },
): UntypedObject {
  const { apiVersion: stored = "" } = object;
  const apiVersion = apiVersionOf({ group: spec.group, version: version.name });
  const from = parseApiVersion(stored).version;
  if (!spec.versions.some(({ name }) => name === from)) {
    throw unknownVersion(stored);
  }
  if (stored === apiVersion) return object;
  const converted = webhook?.convert(object, apiVersion) ??
    structuredClone({ ...object, apiVersion });
  return version.decode(converted).object;
}

function unknownVersion(apiVersion: string): StatusError {
  return serverError(
    `request to convert CR from an invalid group/version: ${apiVersion}`,
  );
}
