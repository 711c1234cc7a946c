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
/** Minimum length of a line of a secret text that is looked for by itself. */
const MIN_LINE = 16;
/** Length from which on a text may have been cut, and that of a text in a URL. */
const MAYBE_CUT = 1_000;
const MAX_IN_URL = 8_192;
/** Bits of the hashes by which the beginnings of secret texts are found. */
const HASH_BITS = 16;
/** Factor of those hashes, and its power for the first of the hashed characters. */
const FACTOR = 0x01000193;
const FIRST_FACTOR = Array.from({ length: MIN_TEXT - 1 }).reduce<number>(
  (power) => Math.imul(power, FACTOR),
  1,
);
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
  readonly #maxText: number;
  #sorted: ReadonlyMap<string, readonly string[]> | undefined;
  /** Whether a hash is that of the beginning of a text. */
  readonly #hashes: Uint8Array = new Uint8Array(2 ** HASH_BITS);

  /** @param maxText Maximum length of a value that is looked for. */
  constructor(maxText: number = Infinity) {
    this.#maxText = maxText;
  }

  /** Number of texts. */
  get size(): number {
    return this.#texts.size;
  }

  /**
   * Adds the values of a Secret, encoded and decoded.
   *
   * @param shown The Secret with what is shown in place of them.
   */
  add({ data, stringData }: SecretPart, shown?: SecretPart): void {
    for (const [name, value] of texts(data)) {
      if (value.length > this.#maxText) continue;
      const other = shown && String(Object(shown.data)[name]);
      this.#note(value, other);
      // As text, and as the text of bytes that `atob` gives.
      for (const encoding of ["utf8", "latin1"] as const) {
        this.#note(
          Buffer.from(value, "base64").toString(encoding),
          other && decoded(other),
        );
      }
    }
    for (const [name, value] of texts(stringData)) {
      if (value.length > this.#maxText) continue;
      this.#note(value, shown && String(Object(shown.stringData)[name]));
    }
  }

  #note(text: string, shown = HIDDEN): void {
    const trimmed = text.trim();
    if (trimmed.length < MIN_TEXT) return;
    this.#noteForms(trimmed, shown);
    if (!trimmed.includes("\n")) return;
    // Of a key in a file, such as an indented one, each line is secret.
    for (const line of trimmed.split("\n")) {
      const part = line.trim();
      if (part.length < MIN_LINE || part.startsWith("-----")) continue;
      this.#noteForms(part, HIDDEN);
    }
  }

  /** Adds a text as it is, in JSON and in URLs. */
  #noteForms(text: string, shown: string): void {
    for (const escape of [jsonText, goJsonText, asciiJsonText]) {
      let form = text;
      for (let depth = 0; depth <= MAX_DEPTH; depth++) {
        this.#set(form, shown);
        // As it is inside of JSON, which may be a text in JSON itself.
        const next = escape(form);
        if (next === form) break;
        form = next;
      }
    }
    if (text.length > MAX_IN_URL) return;
    for (const encode of [encodeURIComponent, pathText, formText]) {
      // Lone surrogates cannot be encoded.
      this.#set(encode(text.toWellFormed()), shown);
    }
  }

  #set(text: string, shown: string): void {
    if (this.#texts.has(text)) return;
    this.#texts.set(text, shown);
    this.#sorted = undefined;
    this.#hashes[slotOf(hashAt(text, 0))] = 1;
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

  /** Replaces secret texts in a text, and the beginning of one at its end. */
  hide(text: string): string {
    const last = text.length - MIN_TEXT;
    if (this.#texts.size === 0 || last < 0) return text;
    let hidden = "";
    let kept = 0;
    let hash = hashAt(text, 0);
    for (let at = 0; at <= last;) {
      const secret = this.#hashes[slotOf(hash)] === 0
        ? undefined
        : this.#found(text, at);
      if (secret !== undefined) {
        hidden += text.slice(kept, at) + this.#texts.get(secret);
        kept = at += secret.length;
        if (at <= last) hash = hashAt(text, at);
        continue;
      }
      const first = Math.imul(text.charCodeAt(at), FIRST_FACTOR);
      const next = text.charCodeAt(at + MIN_TEXT);
      hash = (Math.imul(hash - first, FACTOR) + next) | 0;
      at++;
    }
    return hidden + text.slice(kept);
  }

  #found(text: string, at: number): string | undefined {
    const rest = text.length - at;
    // Long errors and Events are cut.
    const mayBeCut = rest >= (text.length < MAYBE_CUT ? MIN_LINE : MIN_TEXT);
    return this.#byStart().get(text.slice(at, at + MIN_TEXT))?.find((one) =>
      text.startsWith(one, at) ||
      mayBeCut && one.length > rest && one.startsWith(text.slice(at))
    );
  }
}

/** Hash of the characters from a position on. */
function hashAt(text: string, from: number): number {
  let hash = 0;
  for (let at = from; at < from + MIN_TEXT; at++) {
    hash = (Math.imul(hash, FACTOR) + text.charCodeAt(at)) | 0;
  }
  return hash;
}

function slotOf(hash: number): number {
  return (hash ^ (hash >>> HASH_BITS)) & (2 ** HASH_BITS - 1);
}

/** Text as it is inside of JSON. */
function jsonText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** The same, as Go writes it: kubectl does, in annotations. */
function goJsonText(text: string): string {
  return jsonText(text).replace(/[<>&\u2028\u2029]/g, escaped);
}

/** The same, as those write it who escape all but ASCII. */
function asciiJsonText(text: string): string {
  return jsonText(text).replace(/[^ -~]/g, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Text as it is in the path of a URL. */
function pathText(text: string): string {
  const url = new URL("http://localhost/");
  url.pathname = `/${text}`;
  return url.pathname.slice(1);
}

/** Text as it is in a query. */
function formText(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

function decoded(value: string): string {
  return Buffer.from(value, "base64").toString("utf8");
}

function texts(values: unknown): readonly (readonly [string, string])[] {
  return Object.entries(isJsonObject(values) ? values : {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === "string",
  );
}
