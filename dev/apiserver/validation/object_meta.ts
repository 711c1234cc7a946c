import type { ObjectMeta, OwnerReference } from "@coracle/operator/client";
import { parseApiVersion, type StatusCause } from "@coracle/operator/internal";
import {
  DEFAULT_RELEASE,
  type KubernetesRelease,
} from "../kubernetes_release.ts";
import { METADATA_TEXT } from "./rules/rule_data.ts";
import type { ResourceDefinition } from "../registry.ts";
import { byteLength, nameProblems, oddCharacters } from "./names.ts";
import { RuleText } from "./rules/rule_text.ts";
import { validationLine } from "./rules/rule_words.ts";

/** Finalizers that need no domain prefix. */
const STANDARD_FINALIZERS: ReadonlySet<string> = new Set([
  "kubernetes",
  "orphan",
  "foregroundDeletion",
]);

/** Properties of a resource definition that affect metadata validation. */
export type MetadataRules =
  & Pick<ResourceDefinition, "nameRule" | "scope" | "custom">
  & Partial<Pick<ResourceDefinition, "group">>;

/** How a release validates, as {@linkcode KubernetesRelease} has it. */
type Validation = Pick<KubernetesRelease, "isDeclarative">;

/**
 * Groups of servers embedded in kube-apiserver, which accept no standard
 * finalizers.
 */
const EXTENSION_GROUPS: ReadonlySet<string | undefined> = new Set([
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
]);

function knowsStandardFinalizers({ custom, group }: MetadataRules): boolean {
  return !custom && !EXTENSION_GROUPS.has(group);
}

/** Rules of metadata. */
export const METADATA: RuleText = new RuleText({
  text: METADATA_TEXT,
  compileLine: validationLine,
  functions: {
    added: (now: readonly string[] = [], before: readonly string[] = []) =>
      now.filter((finalizer) => !before.includes(finalizer)).sort(),
    byteLength: (text = "") => byteLength(text),
    controllers: (owners: readonly OwnerReference[] = []) =>
      owners.filter(({ controller }) => controller === true)
        .map(({ kind, name }) => `${kind}/${name}`),
    groupOf: (apiVersion = "") => parseApiVersion(apiVersion).group,
    isText: (value: unknown) => typeof value === "string",
    // Replaces a trailing dash, since a suffix follows.
    maskedDash: (prefix: string) =>
      prefix.length > 1 && prefix.endsWith("-")
        ? `${prefix.slice(0, -2)}a`
        : prefix,
    nameProblems,
    oddCharacters: (manager = "") => oddCharacters(manager),
    owns: (struct: object, name: string) => Object.hasOwn(struct, name),
    quoted: (texts: readonly string[]) =>
      texts.map((text) => JSON.stringify(text)).join(", "),
    sizeOf: (annotations: Readonly<Record<string, string>> = {}) =>
      Object.entries(annotations).reduce(
        (size, [key, value]) => size + key.length + value.length,
        0,
      ),
    unknownFinalizer: (finalizer: string) =>
      !finalizer.includes("/") && !STANDARD_FINALIZERS.has(finalizer),
    versionOf: (apiVersion = "") => parseApiVersion(apiVersion).version,
  },
});

/** Violations of a block of rules by metadata. */
function causesOf(
  block: string,
  metadata: object,
  variables: Readonly<Record<string, unknown>> = {},
): StatusCause[] {
  return METADATA.causes(block, metadata, variables, "metadata");
}

/** Validates the metadata of a new object. */
export function metadataProblems(
  metadata: ObjectMeta,
  definition: MetadataRules,
  { isDeclarative }: Validation = DEFAULT_RELEASE,
): StatusCause[] {
  return causesOf("whole", metadata, {
    $nameRule: definition.nameRule,
    $isNamespaced: definition.scope === "Namespaced",
    $knowsFinalizers: knowsStandardFinalizers(definition),
    $isDeclarative: isDeclarative,
  });
}

/** Validates `apiVersion` and `kind` of an embedded object. */
export function typeProblems(object: object, path: string): StatusCause[] {
  return METADATA.causes("type", object, {}, path);
}

/** Validates labels and annotations. */
export function tagProblems(
  tags: Pick<ObjectMeta, "labels" | "annotations">,
): StatusCause[] {
  return causesOf("tags", tags);
}

/**
 * Validates the metadata of an updated object: the generic checks of objects
 * and updates, then those of the kind.
 */
export function metadataUpdateProblems(
  metadata: ObjectMeta,
  live: ObjectMeta,
  definition: MetadataRules & Pick<ResourceDefinition, "metadataChecks">,
  validation: Validation = DEFAULT_RELEASE,
): StatusCause[] {
  const changes = causesOf("changes", metadata, {
    $live: live,
    $isDeclarative: validation.isDeclarative,
  });
  const whole = metadataProblems(metadata, {
    scope: definition.scope,
    nameRule: "path-segment",
    custom: true,
  }, validation);
  const checks = definition.metadataChecks ?? USUAL_CHECKS;
  const finalizers = checks.finalizers && knowsStandardFinalizers(definition)
    ? causesOf("finalizers", metadata)
    : [];
  return [
    ...whole,
    ...changes,
    ...repeated([...changes, ...finalizers], checks.changes),
    ...repeated([...whole, ...finalizers], checks.whole),
  ];
}

/** Causes as a release reports them: a declarative one repeats none. */
export function reportedCauses(
  causes: readonly StatusCause[],
  { custom, group }: MetadataRules,
  { isDeclarative }: Validation,
): readonly StatusCause[] {
  if (!isDeclarative || custom || EXTENSION_GROUPS.has(group)) return causes;
  const byText = new Map(
    causes.map((cause) => [`${cause.field}: ${cause.message}`, cause]),
  );
  return [...byText.values()];
}

/** Metadata checks of most kinds: only those of an update. */
const USUAL_CHECKS = { changes: 1, whole: 0, finalizers: true };

function repeated<T>(items: readonly T[], times: number): T[] {
  return Array.from({ length: times }, () => items).flat();
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
