import type {
  DefinedKind,
  DefinedObject,
  KindDefinition,
  KindVersion,
} from "./kind_definition.ts";
import type { CrdVersion } from "./crd_manifest.ts";
import { crdVersion } from "./crd_version.ts";
import { kindNames } from "./kind_names.ts";

/** The options that belong to one version. */
const VERSION_OPTIONS: readonly string[] = [
  "spec",
  "status",
  "description",
  "printerColumns",
  "selectableFields",
  "scale",
  "validations",
  "served",
  "deprecated",
];

/** The options that belong to the kind. */
const KIND_OPTIONS: readonly string[] = [
  "group",
  "version",
  "kind",
  "plural",
  "singular",
  "listKind",
  "shortNames",
  "categories",
  "scope",
  "versions",
  "storageVersion",
  "labels",
  "annotations",
];

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
 * is unknown, or a schema says something that a CustomResourceDefinition cannot
 * say; the message names the path.
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
  const { group, version, kind, scope = "Namespaced" } = definition;
  const names = kindNames(definition);
  refuseUnknown(definition, [...KIND_OPTIONS, ...VERSION_OPTIONS], kind);
  if (scope !== "Namespaced" && scope !== "Cluster") {
    throw new TypeError(
      `Cannot define the kind ${kind}: 'scope' must be "Namespaced" or "Cluster": received ${
        JSON.stringify(scope)
      }`,
    );
  }
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
      kindNames({ ...definition, version: name });
      refuseUnknown(one, VERSION_OPTIONS, `${kind} ${name}`);
    }
    return crdVersion(name, one, { kind, storage: name === storage });
  }));
}

function refuseUnknown(
  options: object,
  known: readonly string[],
  subject: string,
): void {
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new TypeError(
        `Cannot define the kind ${subject}: there is no such option: received '${name}'`,
      );
    }
  }
}
