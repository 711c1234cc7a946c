import { hash } from "node:crypto";

/**
 * A short name for a text: two texts of the same name are the same, as far as
 * anybody will ever see.
 *
 * SHA-1 is used for its speed, not against somebody who looks for collisions:
 * who can choose the texts could as well choose the objects.
 */
export function textHash(text: string): string {
  return hash("sha1", text, "base64");
}
