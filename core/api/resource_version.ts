/**
 * Compares two resource versions of the same kind: negative if the first is
 * older, positive if it is newer, zero if they are equal.
 *
 * Resource versions are decimal numbers of any length. They are compared as text,
 * by length and then by digits, because a JavaScript number would lose the last
 * digits of long ones.
 *
 * @param a A resource version; empty counts as older than any other.
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a === b ? 0 : a < b ? -1 : 1;
}
