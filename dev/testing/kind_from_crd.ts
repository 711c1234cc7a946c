import type { UntypedObject } from "@coracle/operator/client";
import type {
  CrdManifest,
  CrdVersion,
  DefinedKind,
  StandardSchema,
} from "@coracle/operator/crd";
import {
  checkKind,
  checkOption,
  kindNames,
  typeText,
} from "@coracle/operator/internal";

/**
 * Creates the descriptor of a kind from its CustomResourceDefinition, for kinds
 * of other projects whose definition is a YAML file. Like a kind of
 * `defineKind` it can be installed and its status is checked for unknown
 * fields, but its objects are not typed. A conversion webhook is left out.
 *
 * @param crd CustomResourceDefinition, such as the parsed YAML.
 * @param version Version to use. Defaults to the one in which objects are
 * stored.
 * @throws {TypeError} If the value is not a CustomResourceDefinition of
 * `apiextensions.k8s.io/v1`, or does not serve the version.
 *
 * @example A kind of another project in a test
 * ```ts
 * import { kindFromCrd, TestCluster } from "@coracle/dev";
 *
 * const Cell = kindFromCrd({
 *   apiVersion: "apiextensions.k8s.io/v1",
 *   kind: "CustomResourceDefinition",
 *   metadata: { name: "cells.example.com" },
 *   spec: {
 *     group: "example.com",
 *     scope: "Namespaced",
 *     names: { kind: "Cell", plural: "cells" },
 *     versions: [{
 *       name: "v1",
 *       served: true,
 *       storage: true,
 *       schema: { openAPIV3Schema: { type: "object" } },
 *     }],
 *   },
 * });
 * const cluster = await TestCluster.start({ kinds: [Cell] });
 * await cluster.client.list(Cell, { namespace: cluster.namespace });
 * await cluster.stop();
 * ```
 */
export function kindFromCrd(
  crd: object,
  version?: string,
): DefinedKind<UntypedObject> {
  const { apiVersion, kind: crdKind, metadata, spec } = Object(crd) as Partial<
    CrdManifest
  >;
  const names = spec?.names;
  if (
    apiVersion !== "apiextensions.k8s.io/v1" ||
    crdKind !== "CustomResourceDefinition" || !names ||
    !Array.isArray(spec?.versions) || spec.versions.some((one) => !one)
  ) {
    throw new TypeError(
      `Cannot read a kind: it must be a CustomResourceDefinition of apiextensions.k8s.io/v1 with names and versions: received ${
        typeof crdKind === "string" ? `${apiVersion} ${crdKind}` : typeText(crd)
      }`,
    );
  }
  if (version !== undefined) {
    checkOption(version, "name", { name: "version", subject: "kindFromCrd()" });
  }
  const used: CrdVersion | undefined = spec.versions.find((candidate) =>
    version === undefined ? candidate.storage : candidate.name === version
  );
  if (used?.served !== true) {
    throw new TypeError(
      `Cannot read the kind ${names.kind}: its CustomResourceDefinition does not serve the version: received ${
        version ?? used?.name
      } for ${
        spec.versions.filter(({ served }) => served).map(({ name }) => name)
          .join(", ") || "none"
      }`,
    );
  }
  const { kind } = names;
  const { group, scope, versions } = spec;
  checkKind({ group, version: used.name, kind, scope }, "kindFromCrd()");
  const { labels = {}, annotations = {} } = metadata ?? {};
  return Object.freeze({
    group,
    version: used.name,
    kind,
    scope,
    ...kindNames({ ...names, group, version: used.name }),
    labels,
    annotations,
    versions,
    specSchema: partSchema(used, "spec"),
    statusSchema: used.subresources?.status && partSchema(used, "status"),
  });
}

/** Schema of the spec or status without checks in the program. */
function partSchema(
  { schema }: CrdVersion,
  part: "spec" | "status",
): StandardSchema {
  return {
    "~standard": {
      version: 1,
      vendor: "CustomResourceDefinition",
      validate: (value) => ({ value }),
      jsonSchema: {
        input: () => ({ ...schema?.openAPIV3Schema?.properties?.[part] }),
      },
    },
  };
}
