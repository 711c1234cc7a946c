import type { WrittenAs } from "../api/object.ts";
import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";
import { crdVersion } from "./crd_version.ts";
import type {
  CrdVersion,
  DefinedKind,
  DefinedObject,
  KindDefinition,
  KindVersion,
} from "./kind_definition.ts";
import { kindNames } from "./kind_names.ts";

/** Table of {@linkcode KindVersion}; `crdVersion` checks it further. */
const VERSION_RULES: OptionRules<KindVersion> = {
  spec: "any?",
  status: "any?",
  description: "string?",
  printerColumns: "array?",
  selectableFields: "strings?",
  scale: "object?",
  validations: "array?",
  served: "boolean?",
  deprecated: "any?",
};

/** Table of {@linkcode KindDefinition}; `kindNames` checks it further. */
const KIND_RULES: OptionRules<KindDefinition> = {
  ...VERSION_RULES,
  group: "any?",
  version: "any?",
  kind: "any?",
  plural: "any?",
  singular: "any?",
  listKind: "string?",
  shortNames: "strings?",
  categories: "strings?",
  scope: ["Namespaced", "Cluster", undefined],
  versions: "object?",
  storageVersion: "string?",
  labels: "object?",
  annotations: "object?",
};

/**
 * Defines a custom kind by its names and the schemas of its objects, written with
 * zod or any other library that implements Standard Schema.
 *
 * The result is a kind like any other: clients, informers and controllers accept
 * it, and their objects have the types of the schemas. It also contains its
 * CustomResourceDefinition, which {@linkcode crdManifest} returns and
 * {@linkcode installCrd} applies to a server.
 *
 * @param definition The names and schemas.
 * @throws {TypeError} If the API server would refuse a name, an option is unknown
 * or of the wrong type, or a schema cannot be expressed in a
 * CustomResourceDefinition; the error names the path.
 * @throws {RangeError} If the scope does not exist.
 *
 * @example A kind with a spec and a status
 * ```ts
 * import { defineKind } from "@coracle/operator/crd";
 * import { z } from "zod";
 *
 * const WebPage = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "WebPage",
 *   spec: z.object({ html: z.string(), exposed: z.boolean().default(false) }),
 *   status: z.object({ ready: z.boolean() }).partial(),
 * });
 * ```
 */
export function defineKind<const D extends KindDefinition>(
  definition: D,
):
  & DefinedKind<DefinedObject<D>>
  & WrittenAs<DefinedObject<D, "input">> {
  checkOption(definition, "object", { name: "definition", subject: "a kind" });
  const { group, version, kind, scope = "Namespaced" } = definition;
  checkOptions(definition, KIND_RULES, `the kind ${String(kind)}`);
  const names = kindNames(definition);
  return Object.freeze({
    group,
    version,
    kind,
    scope,
    ...names,
    labels: Object.freeze({ ...definition.labels }),
    annotations: Object.freeze({ ...definition.annotations }),
    versions: versionsOf(definition),
    specSchema: definition.spec,
    statusSchema: definition.status,
  });
}

/** Versions of the definition: that of the program, then the others in order. */
function versionsOf(definition: KindDefinition): readonly CrdVersion[] {
  const { kind, version, versions = {} } = definition;
  const storage = definition.storageVersion ?? version;
  if (Object.hasOwn(versions, version)) {
    throw new TypeError(
      `Cannot define the kind ${kind}: 'versions' are those besides '${version}': received "${version}" again`,
    );
  }
  const all: [string, KindVersion][] = [
    [version, definition],
    ...Object.entries(versions),
  ];
  if (!all.some(([name]) => name === storage)) {
    throw new TypeError(
      `Cannot define the kind ${kind}: 'storageVersion' must be one of its versions: received "${storage}"`,
    );
  }
  return Object.freeze(all.map(([name, one]) => {
    if (one !== definition) {
      checkOptions(one, VERSION_RULES, `the kind ${kind}, version ${name}`);
      kindNames({ ...definition, version: name });
    }
    return crdVersion(name, one, { kind, storage: name === storage });
  }));
}
