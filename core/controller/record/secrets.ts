/**
 * What plans, snapshots and recordings hide of Secrets.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import type { UntypedObject } from "../../api/object.ts";
import { isJsonObject } from "../../patch/json_value.ts";

/** Annotations in which tools keep a copy of an object, some of them packed. */
const COPIES: ReadonlySet<string> = new Set([
  "banzaicloud.com/last-applied",
  "kapp.k14s.io/original",
  "kubectl.kubernetes.io/last-applied-configuration",
  "objectset.rio.cattle.io/applied",
]);
/** Minimum length of a secret text that is looked for in others. */
const MIN_TEXT = 6;
/** Number of secret texts from which on each is no longer looked for by itself. */
const MANY_TEXTS = 64;
/** Number of documents of JSON, one in another, in which a secret text is found. */
const MAX_DEPTH = 3;
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
    const { annotations = {} } = metadata ?? {};
    const copies = Object.keys(annotations).filter((name) => COPIES.has(name));
    return {
      ...secret,
      ...isJsonObject(data) && {
        data: valuesBy(data, (value) => base64(digest(value))),
      },
      // Equal to the decoded digest of the same value.
      ...isJsonObject(stringData) && {
        stringData: valuesBy(stringData, (value) => digest(base64(value))),
      },
      ...copies.length > 0 && {
        metadata: {
          ...metadata,
          annotations: {
            ...annotations,
            ...Object.fromEntries(
              copies.map((name) => [name, digest(annotations[name])]),
            ),
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
      (third === undefined || COPIES.has(String(third)));
}

/** Texts of Secrets that nothing may show, wherever they were copied to. */
export class SecretTexts {
  /** What is shown in place of each. */
  readonly #texts: Map<string, string> = new Map();
  #sorted: ReadonlyMap<string, readonly string[]> | undefined;

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
    let form = trimmed;
    for (let depth = 0; depth <= MAX_DEPTH; depth++) {
      this.#set(form, shown);
      // As it is inside of JSON, which may be a text in JSON itself.
      form = JSON.stringify(form).slice(1, -1);
    }
  }

  #set(text: string, shown: string): void {
    if (this.#texts.has(text)) return;
    this.#texts.set(text, shown);
    this.#sorted = undefined;
  }

  /** Texts by their beginnings, the longest first: one may begin with another. */
  #byStart(): ReadonlyMap<string, readonly string[]> {
    return this.#sorted ??= Map.groupBy(
      [...this.#texts.keys()].sort((a, b) => b.length - a.length),
      (text) => text.slice(0, MIN_TEXT),
    );
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

  /** Whether a text may have secret ones; with many of them it is looked at closer. */
  #has(text: string): boolean {
    if (this.#texts.size > MANY_TEXTS) return true;
    for (const secret of this.#texts.keys()) {
      if (text.includes(secret)) return true;
    }
    return false;
  }

  /** Replaces secret texts in a text. */
  hide(text: string): string {
    if (!this.#has(text)) return text;
    const starts = this.#byStart();
    let hidden = "";
    let kept = 0;
    for (let at = 0; at <= text.length - MIN_TEXT;) {
      const secret = starts.get(text.slice(at, at + MIN_TEXT))
        ?.find((one) => text.startsWith(one, at));
      if (secret === undefined) {
        at++;
        continue;
      }
      hidden += text.slice(kept, at) + this.#texts.get(secret);
      kept = at += secret.length;
    }
    return hidden + text.slice(kept);
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
