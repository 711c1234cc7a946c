import { checkOption, checkOptions, type OptionRules } from "../api/options.ts";
import type { CrdVersion } from "./crd_object.ts";
import { crdVersion } from "./crd_version.ts";
import type {
  DefinedKind,
  DefinedObject,
  KindDefinition,
  KindVersion,
} from "./kind_definition.ts";
import { kindNames } from "./kind_names.ts";

/** What the options of one version must be; `crdVersion` looks closer. */
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

/** What the options of a kind must be; `kindNames` looks closer. */
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
 * Defines a kind of your own: its names, and what its objects hold, as schemas
 * of zod or of any library that follows the Standard Schema convention.
 *
 * The result is a kind like every other: the client, informers and controllers
 * take it, and the objects they give have the types of the schemas. It carries
 * its CustomResourceDefinition too, which {@linkcode crdManifest} writes and
 * {@linkcode installCrd} puts on a server.
 *
 * @param definition Names and schemas.
 * @throws {TypeError} If a name is one that the API server refuses, an option
 * is unknown or of another type, or a schema says something that a CustomResourceDefinition cannot
 * say; the message names the path.
 * @throws {RangeError} If `scope` is none.
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
 * if (WebPage.plural !== "webpages") throw new Error("Unexpected plural");
 * ```
 */
export function defineKind<const D extends KindDefinition>(
  definition: D,
): DefinedKind<DefinedObject<D>> {
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

/** The version that the program speaks, then the others as they are given. */
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
