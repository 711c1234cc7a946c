/**
 * What plans, snapshots and recordings hide of Secrets.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import type { UntypedObject } from "../../api/object.ts";
import { type ByteRange, wholeRange } from "../../json/byte_range.ts";
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
const HASH_BITS = 18;
const HASH_FACTOR = 0x01000193;
/** Byte that ends a text in JSON. */
const QUOTE = 0x22;
/** Number of documents of JSON, one in another, in which a secret text is found. */
const MAX_DEPTH = 3;
/** Texts and numbers of JSON. */
const JSON_VALUE = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
const JSON_TOKEN = new RegExp(`${JSON_VALUE.source}|[{}[\\],:]`, "g");
/** Character by which a text may be more than one value of JSON. */
const STRUCTURE = /["[\]{},]/;
/** Text in place of a secret one. */
export const HIDDEN = "(hidden)";
/** What is in place of secret texts: as it is, in a URL, and digests of values. */
const HIDDEN_TEXT =
  /\(hidden\)|%28hidden%29|digest-[0-9a-f]{32}|ZGlnZXN0L[A-Za-z0-9+/]{43}/;

/** Whether a text has something in place of a secret one. */
export function hasHidden(text: string): boolean {
  return HIDDEN_TEXT.test(text);
}

/** Whether two texts can be one and the same, as what is hidden in one is not known. */
export function isSameShown(a: string, b: string): boolean {
  return a === b || fits(a, b) || fits(b, a);
}

/** Whether a text has what is shown of another, in its order. */
function fits(shown: string, text: string): boolean {
  const [first = "", ...rest] = shown.split(new RegExp(HIDDEN_TEXT, "g"));
  const last = rest.pop();
  if (last === undefined || !text.startsWith(first)) return false;
  let end = first.length;
  for (const part of rest) {
    const start = text.indexOf(part, end);
    if (start < 0) return false;
    end = start + part.length;
  }
  return text.length - last.length >= end && text.endsWith(last);
}

/** JSON without the texts and numbers of some places, counted in their order. */
export function blanked(json: string, places: readonly number[]): string {
  let place = 0;
  return json.replace(
    JSON_VALUE,
    (value) => places.includes(place++) ? '""' : value,
  );
}

/** Steps to a value of JSON: names of members and positions in lists. */
export type JsonPath = readonly (string | number)[];

/**
 * Whether a value of JSON names an object or a field, or is of the metadata that the
 * server keeps about objects: such a value is shown, as keys are.
 */
function isName(path: JsonPath): boolean {
  const [name, parent, list] = path.toReversed();
  const depth = path[0] === "items" ? path.length - 2 : path.length;
  return parent === "metadata" && /^(?:name|namespace|uid)$/.test(`${name}`) ||
    parent === "details" && /^(?:name|kind|group|uid)$/.test(`${name}`) ||
    list === "ownerReferences" || path.includes("managedFields") ||
    depth === 1 && (name === "apiVersion" || name === "kind") ||
    // Of the operations of a JSON Patch.
    path.length === 2 && typeof parent === "number" &&
      /^(?:op|path|from)$/.test(`${name}`);
}

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
  /** What is shown in place of each, by its bytes. */
  readonly #texts: Map<string, string> = new Map();
  readonly #maxText: number;
  #sorted: ReadonlyMap<string, readonly string[]> | undefined;
  /** Whether a hash is that of the first bytes of a text. */
  #hashes: Uint8Array = new Uint8Array(0);
  /** How far the next beginning of a text is, by two bytes. */
  #shifts: Uint8Array = new Uint8Array(0);

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
    const bytes = Buffer.from(text);
    const key = bytes.toString("latin1");
    if (this.#texts.has(key)) return;
    if (this.#texts.size === 0) {
      this.#hashes = new Uint8Array(2 ** HASH_BITS);
      this.#shifts = new Uint8Array(2 ** 16).fill(MIN_TEXT - 1);
    }
    this.#texts.set(key, shown);
    this.#sorted = undefined;
    this.#hashes[hashAt(bytes, 0)] = 1;
    for (let at = 0; at < MIN_TEXT - 1; at++) {
      const pair = pairAt(bytes, at);
      const shift = this.#shifts[pair] as number;
      this.#shifts[pair] = Math.min(shift, MIN_TEXT - 2 - at);
    }
  }

  /** Texts by their beginnings, the longest first: one may begin with another. */
  #byStart(): ReadonlyMap<string, readonly string[]> {
    return this.#sorted ??= Map.groupBy(
      [...this.#texts.keys()].sort((a, b) => b.length - a.length),
      (text) => text.slice(0, MIN_TEXT),
    );
  }

  /** Whether JSON, or bodies of requests, may have a secret text, also a cut one. */
  mayBeIn({ bytes, start, end }: ByteRange): boolean {
    return this.#next(bytes, start, { end, ends: QUOTE }) !== undefined;
  }

  /**
   * Replaces secret texts in the values of JSON, which stays JSON: a number that has
   * one becomes a text. Keys and names of objects are left.
   *
   * @param at Path of the JSON within an object.
   */
  hideJson(json: string, at: JsonPath = []): string {
    if (!this.mayBeIn(wholeRange(json))) return json;
    try {
      JSON.parse(json);
    } catch {
      return this.hide(json);
    }
    const path = [...at];
    let isKey = false;
    const hidden = json.replace(JSON_TOKEN, (token) => {
      const last = path.length - 1;
      const step = path[last];
      const [first] = token;
      if (first === "{") isKey = path.push("") > 0;
      else if (first === "[") path.push(0);
      else if (first === "}" || first === "]") {
        path.pop();
        isKey = false;
      } else if (first === ":") isKey = false;
      else if (first === ",") {
        if (typeof step === "number") path[last] = step + 1;
        else isKey = true;
      } else if (isKey) path[last] = JSON.parse(token) as string;
      else if (!isName(path)) {
        const text = first === '"' ? token.slice(1, -1) : token;
        const shown = this.hide(text);
        if (shown !== text) return `"${shown}"`;
      }
      return token;
    });
    // One that has structure itself is in more than one value.
    return this.#replace(
      hidden,
      (text, shown) =>
        !STRUCTURE.test(text)
          ? undefined
          : /^["[{]/.test(text)
          ? `"${shown}"`
          : shown,
    );
  }

  /** Which texts and numbers of JSON have a secret text, in their order. */
  placesIn(json: string): number[] {
    if (!this.mayBeIn(wholeRange(json))) return [];
    return json.match(JSON_VALUE)?.flatMap((value, place) =>
      this.hide(value) === value ? [] : [place]
    ) ?? [];
  }

  /** Replaces secret texts in a text, and the beginning of one at its end. */
  hide(text: string): string {
    return this.#replace(text, (_, shown) => shown);
  }

  #replace(
    text: string,
    by: (secret: string, shown: string) => string | undefined,
  ): string {
    if (this.#texts.size === 0 || text.length < MIN_TEXT) return text;
    const bytes = Buffer.from(text);
    const end = bytes.length;
    let hidden = "";
    let kept = 0;
    for (let at = 0;;) {
      const found = this.#next(bytes, at, { end });
      if (found === undefined) break;
      const { start, secret } = found;
      at = Math.min(start + secret.length, end);
      const shown = by(secret, this.#texts.get(secret) as string);
      if (shown === undefined) {
        at = start + 1;
        continue;
      }
      hidden += bytes.toString("utf8", kept, start) + shown;
      kept = at;
    }
    return kept === 0 ? text : hidden + bytes.toString("utf8", kept);
  }

  /** Next secret text from a position on; most bytes are passed over. */
  #next(
    bytes: Uint8Array,
    from: number,
    limits: { readonly end: number; readonly ends?: number },
  ): { readonly start: number; readonly secret: string } | undefined {
    if (this.#texts.size === 0) return undefined;
    const last = limits.end - 2;
    for (let at = from + MIN_TEXT - 2; at <= last;) {
      const shift = this.#shifts[pairAt(bytes, at)] as number;
      if (shift > 0) {
        at += shift;
        continue;
      }
      const start = at - MIN_TEXT + 2;
      if (this.#hashes[hashAt(bytes, start)] === 1) {
        const secret = this.#secretAt(bytes, start, limits);
        if (secret !== undefined) return { start, secret };
      }
      at++;
    }
    return undefined;
  }

  #secretAt(
    bytes: Uint8Array,
    start: number,
    { end, ends }: { readonly end: number; readonly ends?: number },
  ): string | undefined {
    const first = String.fromCharCode(
      ...bytes.subarray(start, start + MIN_TEXT),
    );
    // Long errors and Events are cut.
    const least = ends !== undefined || end >= MAYBE_CUT ? MIN_TEXT : MIN_LINE;
    return this.#byStart().get(first)?.find((one) => {
      const most = Math.min(one.length, end - start);
      let same = MIN_TEXT;
      while (same < most && one.charCodeAt(same) === bytes[start + same]) {
        same++;
      }
      if (same === one.length) return true;
      const after = start + same;
      return same >= least &&
        (after === end || ends !== undefined &&
            (bytes[after] === ends || same >= MIN_LINE));
    });
  }
}

/** Hash of the first bytes of a text. */
function hashAt(bytes: Uint8Array, from: number): number {
  let hash = 0;
  for (let at = from; at < from + MIN_TEXT; at++) {
    hash = (Math.imul(hash, HASH_FACTOR) + (bytes[at] as number)) | 0;
  }
  return (hash ^ (hash >>> HASH_BITS)) & (2 ** HASH_BITS - 1);
}

function pairAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
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
