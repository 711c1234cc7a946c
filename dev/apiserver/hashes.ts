import { canonicalText } from "./crd/schema/json_tree.ts";

/** Alphabet of hashes in names; the same as that of generated names. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
const encoder = new TextEncoder();

/** Hash as a part of a name: the decimal digits of a number as safe letters. */
function safeText(hash: number): string {
  return [...String(hash)].map((digit) =>
    ALPHABET[digit.charCodeAt(0) % ALPHABET.length]
  ).join("");
}

/**
 * FNV hash of 32 bits; the variant `1a` multiplies after the exclusive or. With
 * a UID, which is random, it also stands for the random numbers of kube-apiserver.
 */
export function fnv(text: string, variant: "1" | "1a" = "1a"): number {
  let hash = 0x811c9dc5;
  for (const byte of encoder.encode(text)) {
    if (variant === "1a") hash ^= byte;
    hash = Math.imul(hash, 0x01000193);
    if (variant === "1") hash ^= byte;
  }
  return hash >>> 0;
}

/**
 * Value of the label `pod-template-hash`. Kubernetes hashes Go's memory layout;
 * this hash has the same form, but covers the JSON of the template.
 */
export function templateHash(template: unknown, collisions?: number): string {
  return safeText(fnv(
    canonicalText(template) + (collisions === undefined ? "" : collisions),
    "1a",
  ));
}

/** Hash of the data of a ControllerRevision, for its name. */
export function revisionHash(data: unknown, collisions?: number): string {
  return safeText(fnv(
    canonicalText(data) + (collisions === undefined ? "" : collisions),
    "1",
  ));
}
