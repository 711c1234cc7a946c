import type { CrdManifest } from "@coracle/operator/crd";
import type { ResolvedKind } from "@coracle/operator/kinds";

/** Kind with a number, of those that a bench makes. */
export function manyKind(index: number): ResolvedKind {
  return {
    group: "kinds.coracle.dev",
    version: "v1",
    kind: `Kind${index}`,
    plural: `kind${index}s`,
    scope: "Namespaced",
  };
}

/** Definition of such a kind. */
export function manyKindCrd(index: number): CrdManifest {
  const { group, version, kind, plural, scope } = manyKind(index);
  const schema = {
    type: "object",
    properties: {
      spec: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    },
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
      },
      versions: [{
        name: version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: schema },
      }],
    },
  } as CrdManifest;
}
