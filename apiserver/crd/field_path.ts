/**
 * Paths within an object as kube-apiserver writes them in causes:
 * `spec.list[0].map[key]`. The empty path is the root.
 */

/** What a cause about the whole object names as its field. */
export const ROOT_FIELD = "<nil>";

/** The path of a named field. */
export function childPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** The path of an item of a list, or of an entry of a map. */
export function keyPath(path: string, key: string | number): string {
  return `${path}[${key}]`;
}

/** The field that a cause names. */
export function fieldOf(path: string): string {
  return path === "" ? ROOT_FIELD : path;
}
