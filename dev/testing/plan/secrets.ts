/**
 * What plans and snapshots hide of Secrets.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import type { UntypedObject } from "@coracle/operator/client";
import { isJsonObject } from "@coracle/operator/internal";

/** Annotation in which `kubectl apply` keeps a copy of an object. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
/** Minimum length of a secret text that is looked for in others. */
const MIN_TEXT = 6;
/** Text in place of a secret one. */
export const HIDDEN = "(hidden)";

/** Whether a resource is that of Secrets. */
export function isSecrets(
  { group, plural }: { readonly group: string; readonly plural: string },
): boolean {
  return group === "" && plural === "secrets";
}

/**
 * Function that replaces the values of a Secret by keyed digests: equal values
 * have equal digests within a snapshot, and no value can be guessed without the
 * key, which is forgotten.
 */
export function secretDigests(): (secret: UntypedObject) => UntypedObject {
  const key = randomBytes(32);
  const digest = (value: unknown) => {
    const text = createHmac("sha256", key).update(JSON.stringify(value))
      .digest("hex");
    return `digest-${text.slice(0, 32)}`;
  };
  return (secret) => {
    const { data, stringData: _, metadata, ...rest } = secret;
    const { annotations } = metadata;
    const values = isJsonObject(data)
      ? Object.entries(data).map(([name, value]) => [
        name,
        Buffer.from(digest(value)).toString("base64"),
      ])
      : undefined;
    const copy = annotations?.[LAST_APPLIED];
    return {
      ...rest,
      ...values && { data: Object.fromEntries(values) },
      metadata: copy === undefined ? metadata : {
        ...metadata,
        annotations: { ...annotations, [LAST_APPLIED]: digest(copy) },
      },
    };
  };
}

/** Whether the value at a path of a Secret is secret. */
export function isSecretPath(path: readonly (string | number)[]): boolean {
  const [first, second, third] = path;
  return first === "data" || first === "stringData" ||
    first === "metadata" && second === "annotations" &&
      (third === undefined || third === LAST_APPLIED);
}

/** Texts of Secrets that nothing may print, wherever they were copied to. */
export class SecretTexts {
  readonly #texts: Set<string> = new Set();

  /** Adds the values of a Secret, encoded and decoded. */
  add({ data, stringData }: UntypedObject): void {
    for (const value of Object.values(isJsonObject(data) ? data : {})) {
      if (typeof value !== "string") continue;
      this.#note(value);
      this.#note(Buffer.from(value, "base64").toString("utf8"));
    }
    for (
      const value of Object.values(isJsonObject(stringData) ? stringData : {})
    ) {
      if (typeof value === "string") this.#note(value);
    }
  }

  #note(text: string): void {
    const trimmed = text.trim();
    if (trimmed.length < MIN_TEXT) return;
    this.#texts.add(trimmed);
    // As it is inside of JSON.
    this.#texts.add(JSON.stringify(trimmed).slice(1, -1));
  }

  /** Replaces secret texts in a text. */
  hide(text: string): string {
    let hidden = text;
    for (const secret of this.#texts) {
      if (hidden.includes(secret)) hidden = hidden.replaceAll(secret, HIDDEN);
    }
    return hidden;
  }
}
