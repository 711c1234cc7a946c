import type { WebhookClientConfig } from "../client/webhook_host.ts";
import { crdConversion, type CrdManifest } from "./crd_object.ts";
import { typeText } from "../api/options.ts";
import { type DefinedKind, isDefinedKind } from "./kind_definition.ts";

/**
 * Returns the CustomResourceDefinition of a kind, as plain data that can be
 * sent to a server or written as YAML.
 *
 * @param kind Kind that {@linkcode defineKind} returned.
 * @param options.conversion Place where an API server calls the operator, to
 * convert between versions with functions. Without it a server refuses the
 * definition of such a kind, whose objects it would store unconverted.
 * @throws {TypeError} If `defineKind` did not return the kind.
 *
 * @example Write it to a file
 * ```ts
 * import { crdManifest, defineKind } from "@coracle/operator/crd";
 * import { z } from "zod";
 *
 * const Lamp = defineKind({
 *   group: "sample.coracle.dev",
 *   version: "v1",
 *   kind: "Lamp",
 *   spec: z.object({ on: z.boolean() }),
 * });
 * const json = JSON.stringify(crdManifest(Lamp), undefined, 2);
 * if (!json.includes("lamps.sample.coracle.dev")) throw new Error("No name");
 * ```
 */
export function crdManifest(
  kind: DefinedKind,
  { conversion }: {
    readonly conversion?: WebhookClientConfig | undefined;
  } = {},
): CrdManifest {
  if (!isDefinedKind(kind)) {
    throw new TypeError(
      `Cannot write a CustomResourceDefinition: only a kind of defineKind() or kindFromCrd() has one: received ${
        typeText(kind)
      }`,
    );
  }
  const { group, scope, plural, singular, listKind, labels, annotations } =
    kind;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.${group}`,
      ...(isEmpty(labels) ? {} : { labels }),
      ...(isEmpty(annotations) ? {} : { annotations }),
    },
    spec: {
      group,
      scope,
      names: {
        kind: kind.kind,
        listKind,
        plural,
        singular,
        ...(isEmpty(kind.shortNames) ? {} : { shortNames: kind.shortNames }),
        ...(isEmpty(kind.categories) ? {} : { categories: kind.categories }),
      },
      versions: kind.versions,
      ...(kind.conversion && { conversion: crdConversion(conversion) }),
    },
  };
}

function isEmpty(value: object): boolean {
  return Object.keys(value).length === 0;
}
