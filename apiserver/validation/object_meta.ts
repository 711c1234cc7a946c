import type { StatusCause } from "../../core/api/api_error.ts";
import { parseApiVersion } from "../../core/api/kind.ts";
import type { ObjectMeta, OwnerReference } from "../../core/api/object.ts";
import {
  invalidCauses,
  labelProblems,
  labelValueProblems,
  nameProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
} from "./names.ts";
import type { ResourceDefinition } from "../registry.ts";
import { fieldError } from "../status.ts";
import { metadataChecksOf } from "./metadata_checks.ts";

/** Finalizers that need no domain prefix. */
const STANDARD_FINALIZERS: ReadonlySet<string> = new Set([
  "kubernetes",
  "orphan",
  "foregroundDeletion",
]);

/** Maximum total size of annotation keys and values, in bytes. */
const ANNOTATIONS_LIMIT_BYTES = 256 * 1024;

/** Properties of a resource definition that affect metadata validation. */
export type MetadataRules =
  & Pick<ResourceDefinition, "nameRule" | "scope" | "custom">
  & Partial<Pick<ResourceDefinition, "group">>;

/**
 * Groups of servers embedded in kube-apiserver, which know no standard
 * finalizers.
 */
const EXTENSION_GROUPS: ReadonlySet<string | undefined> = new Set([
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
]);

function knowsStandardFinalizers({ custom, group }: MetadataRules): boolean {
  return !custom && !EXTENSION_GROUPS.has(group);
}

/** Validates the metadata of a new object. */
export function metadataProblems(
  metadata: ObjectMeta,
  definition: MetadataRules,
): StatusCause[] {
  const { name, generateName, namespace, generation } = metadata;
  const causes: StatusCause[] = [];
  if (generateName) {
    causes.push(...invalidCauses(
      "metadata.generateName",
      generateName,
      nameProblems(maskTrailingDash(generateName), definition.nameRule),
    ));
  }
  if (!name) {
    causes.push(
      fieldError.required("metadata.name", "name or generateName is required"),
    );
  } else {
    causes.push(...invalidCauses(
      "metadata.name",
      name,
      definition.nameRule === "path-segment"
        ? pathSegmentProblems(name)
        : nameProblems(name, definition.nameRule),
    ));
  }
  if (definition.scope === "Namespaced") {
    causes.push(
      ...(namespace
        ? invalidCauses(
          "metadata.namespace",
          namespace,
          labelProblems(namespace),
        )
        : [fieldError.required("metadata.namespace")]),
    );
  } else if (namespace) {
    causes.push(
      fieldError.forbidden("metadata.namespace", "not allowed on this type"),
    );
  }
  if ((generation ?? 0) < 0) {
    causes.push(fieldError.invalid(
      "metadata.generation",
      generation,
      "must be greater than or equal to 0",
    ));
  }
  return [
    ...causes,
    ...sharedProblems(metadata),
    ...finalizerProblems(metadata),
    ...(knowsStandardFinalizers(definition)
      ? standardFinalizerProblems(metadata)
      : []),
  ];
}

/** Replaces a trailing dash of a generateName, since a suffix follows. */
function maskTrailingDash(prefix: string): string {
  return prefix.length > 1 && prefix.endsWith("-")
    ? `${prefix.slice(0, -2)}a`
    : prefix;
}

/**
 * Validates the metadata of an updated object: the generic checks of objects
 * and updates, then those of the kind.
 */
export function metadataUpdateProblems(
  metadata: ObjectMeta,
  live: ObjectMeta,
  definition: MetadataRules & Pick<ResourceDefinition, "plural" | "group">,
): StatusCause[] {
  const changes = changeProblems(metadata, live);
  const whole = metadataProblems(metadata, {
    scope: definition.scope,
    nameRule: "path-segment",
    custom: true,
  });
  const checks = metadataChecksOf(definition);
  const finalizers = checks.finalizers && knowsStandardFinalizers(definition)
    ? standardFinalizerProblems(metadata)
    : [];
  return [
    ...whole,
    ...changes,
    ...repeated([...changes, ...finalizers], checks.changes),
    ...repeated([...whole, ...finalizers], checks.whole),
  ];
}

function repeated<T>(items: readonly T[], times: number): T[] {
  return Array.from({ length: times }, () => items).flat();
}

function changeProblems(metadata: ObjectMeta, live: ObjectMeta): StatusCause[] {
  const causes: StatusCause[] = [];
  if (live.deletionTimestamp !== undefined) {
    const added = (metadata.finalizers ?? []).filter((finalizer) =>
      !live.finalizers?.includes(finalizer)
    ).sort();
    if (added.length > 0) {
      const list = added.map((one) => JSON.stringify(one)).join(", ");
      causes.push(fieldError.forbidden(
        "metadata.finalizers",
        `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`,
      ));
    }
  }
  if (!metadata.resourceVersion) {
    causes.push(fieldError.invalid(
      "metadata.resourceVersion",
      metadata.resourceVersion ?? "",
      "must be specified for an update",
    ));
  }
  if ((metadata.generation ?? 0) < (live.generation ?? 0)) {
    causes.push(fieldError.invalid(
      "metadata.generation",
      metadata.generation ?? 0,
      "must not be decremented",
    ));
  }
  for (const field of IMMUTABLE) {
    if (metadata[field] !== live[field]) {
      const absent = field.endsWith("Timestamp") ? null : "";
      causes.push(fieldError.invalid(
        `metadata.${field}`,
        metadata[field] ?? absent,
        "field is immutable",
      ));
    }
  }
  return [...causes, ...sharedProblems(metadata)];
}

/** Warnings for finalizers of custom resources whose names may collide. */
export function finalizerWarnings(
  { finalizers = [] }: ObjectMeta,
  live?: ObjectMeta,
): string[] {
  return finalizers.filter((finalizer) =>
    !finalizer.includes("/") && !STANDARD_FINALIZERS.has(finalizer) &&
    !live?.finalizers?.includes(finalizer)
  ).map((finalizer) =>
    `metadata.finalizers: ${
      JSON.stringify(finalizer)
    }: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`
  );
}

const IMMUTABLE = [
  "name",
  "namespace",
  "uid",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
] as const;

function sharedProblems(metadata: ObjectMeta): StatusCause[] {
  const { ownerReferences = [] } = metadata;
  return [...tagProblems(metadata), ...ownerProblems(ownerReferences)];
}

/** Validates labels and annotations. */
export function tagProblems(
  { labels = {}, annotations = {} }: Pick<ObjectMeta, "labels" | "annotations">,
): StatusCause[] {
  const causes: StatusCause[] = [];
  for (const [key, value] of Object.entries(labels)) {
    causes.push(
      ...invalidCauses("metadata.labels", key, qualifiedNameProblems(key)),
      ...invalidCauses("metadata.labels", value, labelValueProblems(value)),
    );
  }
  let size = 0;
  for (const [key, value] of Object.entries(annotations)) {
    causes.push(...invalidCauses(
      "metadata.annotations",
      key,
      qualifiedNameProblems(key.toLowerCase()),
    ));
    size += key.length + value.length;
  }
  if (size > ANNOTATIONS_LIMIT_BYTES) {
    causes.push(
      fieldError.tooLong("metadata.annotations", ANNOTATIONS_LIMIT_BYTES),
    );
  }
  return causes;
}

function ownerProblems(owners: readonly OwnerReference[]): StatusCause[] {
  const causes: StatusCause[] = [];
  const field = "metadata.ownerReferences";
  let controller: string | undefined;
  for (const owner of owners) {
    const must = (part: string, value: string | undefined, subject = "") => {
      if (!value) {
        causes.push(
          fieldError.invalid(
            `${field}.${part}`,
            value ?? "",
            `${subject}must not be empty`,
          ),
        );
      }
    };
    const { group, version } = parseApiVersion(owner.apiVersion ?? "");
    must("apiVersion", version, "version ");
    must("kind", owner.kind);
    must("name", owner.name);
    must("uid", owner.uid);
    if (owner.kind === "Event" && group === "") {
      causes.push(
        fieldError.invalid(
          field,
          owner,
          "/v1, Kind=Event is disallowed from being an owner",
        ),
      );
    }
    if (owner.controller === true) {
      if (controller !== undefined) {
        causes.push(fieldError.invalid(
          field,
          owners,
          `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${owner.kind}/${owner.name}`,
        ));
      }
      controller ??= `${owner.kind}/${owner.name}`;
    }
  }
  return causes;
}

function finalizerProblems({ finalizers = [] }: ObjectMeta): StatusCause[] {
  const field = "metadata.finalizers";
  const causes = finalizers.flatMap((finalizer) =>
    invalidCauses(field, finalizer, qualifiedNameProblems(finalizer))
  );
  if (
    finalizers.includes("orphan") && finalizers.includes("foregroundDeletion")
  ) {
    causes.push(fieldError.invalid(
      field,
      finalizers,
      "finalizer orphan and foregroundDeletion cannot be both set",
    ));
  }
  return causes;
}

function standardFinalizerProblems(
  { finalizers = [] }: ObjectMeta,
): StatusCause[] {
  return finalizers.flatMap((finalizer, index) =>
    finalizer.includes("/") || STANDARD_FINALIZERS.has(finalizer) ? [] : [
      fieldError.invalid(
        `metadata.finalizers[${index}]`,
        finalizer,
        "name is neither a standard finalizer name nor is it fully qualified",
      ),
    ]
  );
}
