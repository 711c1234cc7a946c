import type { ResourceDefinition } from "../registry.ts";

/** Resources that etcd stores under older names. */
const OLD_NAMES: ReadonlyMap<string, string> = new Map([
  ["/services", "services/specs"],
  ["/endpoints", "services/endpoints"],
  ["/nodes", "minions"],
  ["networking.k8s.io/ingresses", "ingress"],
]);

/** Key of an object in kube-apiserver's etcd, as in some messages. */
export function storagePath(
  { group, plural, custom, storedAs }: ResourceDefinition,
  key: string,
): string {
  const home = storedAs ?? { group, plural };
  const folder = OLD_NAMES.get(`${home.group}/${home.plural}`) ??
    (custom || home.group === "apiextensions.k8s.io"
      ? `${home.group}/${home.plural}`
      : home.plural);
  return `/registry/${folder}/${key}`;
}
