/**
 * What plans, snapshots and recordings hide of Secrets.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import type { UntypedObject } from "../../api/object.ts";
import { isJsonObject } from "../../patch/json_value.ts";

/** Annotation in which `kubectl apply` keeps a copy of an object. */
const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
/** Minimum length of a secret text that is looked for in others. */
const MIN_TEXT = 6;
/** Texts and numbers of JSON. */
const JSON_VALUE = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
/** Text in place of a secret one. */
export const HIDDEN = "(hidden)";

/** Whether a resource is that of Secrets. */
export function isSecrets(
  { group, plural }: { readonly group: string; readonly plural: string },
): boolean {
  return group === "" && plural === "secrets";
}

/** Secret, or the part of one that a write sends. */
export type SecretPart = Partial<UntypedObject>;

/**
 * Function that replaces the values of a Secret by keyed digests: equal values
 * have equal digests, and no value can be guessed without the key, which is
 * forgotten.
 */
export function secretDigests(): <S extends SecretPart>(secret: S) => S {
  const key = randomBytes(32);
  const digest = (value: unknown) => {
    const text = createHmac("sha256", key).update(JSON.stringify(value) ?? "")
      .digest("hex");
    return `digest-${text.slice(0, 32)}`;
  };
  const base64 = (text: unknown) =>
    Buffer.from(String(text)).toString("base64");
  return (secret) => {
    const { data, stringData, metadata } = secret;
    const copy = metadata?.annotations?.[LAST_APPLIED];
    return {
      ...secret,
      ...isJsonObject(data) && {
        data: valuesBy(data, (value) => base64(digest(value))),
      },
      // Equal to the decoded digest of the same value.
      ...isJsonObject(stringData) && {
        stringData: valuesBy(stringData, (value) => digest(base64(value))),
      },
      ...copy !== undefined && {
        metadata: {
          ...metadata,
          annotations: {
            ...metadata?.annotations,
            [LAST_APPLIED]: digest(copy),
          },
        },
      },
    };
  };
}

/** Record with other values; null, which removes one, stays. */
function valuesBy(
  values: object,
  by: (value: unknown) => string,
): Record<string, string | null> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      value === null ? null : by(value),
    ]),
  );
}

/** Whether the value at a path of a Secret is secret. */
export function isSecretPath(path: readonly (string | number)[]): boolean {
  const [first, second, third] = path;
  return first === "data" || first === "stringData" ||
    first === "metadata" && second === "annotations" &&
      (third === undefined || third === LAST_APPLIED);
}

/** Texts of Secrets that nothing may show, wherever they were copied to. */
export class SecretTexts {
  /** What is shown in place of each. */
  readonly #texts: Map<string, string> = new Map();

  /** Whether there are none. */
  get isEmpty(): boolean {
    return this.#texts.size === 0;
  }

  /**
   * Adds the values of a Secret, encoded and decoded.
   *
   * @param shown The Secret with what is shown in place of them.
   */
  add({ data, stringData }: SecretPart, shown?: SecretPart): void {
    for (const [name, value] of texts(data)) {
      const other = shown && String(Object(shown.data)[name]);
      this.#note(value, other);
      this.#note(decoded(value), other && decoded(other));
    }
    for (const [name, value] of texts(stringData)) {
      this.#note(value, shown && String(Object(shown.stringData)[name]));
    }
  }

  #note(text: string, shown = HIDDEN): void {
    const trimmed = text.trim();
    if (trimmed.length < MIN_TEXT) return;
    this.#texts.set(trimmed, shown);
    // As it is inside of JSON.
    this.#texts.set(JSON.stringify(trimmed).slice(1, -1), shown);
  }

  /**
   * Replaces secret texts in JSON, which stays JSON: a number that has one becomes a
   * text.
   */
  hideJson(json: string): string {
    if (this.hide(json) === json) return json;
    const hidden = json.replace(JSON_VALUE, (value) => {
      const shown = this.hide(value);
      return shown === value || value.startsWith('"') ? shown : `"${shown}"`;
    });
    // It was no JSON, or has the structure of a secret text.
    return this.hide(hidden);
  }

  /** Replaces secret texts in a text. */
  hide(text: string): string {
    let hidden = text;
    for (const [secret, shown] of this.#texts) {
      if (hidden.includes(secret)) hidden = hidden.replaceAll(secret, shown);
    }
    return hidden;
  }
}

function decoded(value: string): string {
  return Buffer.from(value, "base64").toString("utf8");
}

function texts(values: unknown): readonly (readonly [string, string])[] {
  return Object.entries(isJsonObject(values) ? values : {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
}
