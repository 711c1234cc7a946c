import { Buffer } from "node:buffer";
import type { OwnerReference } from "../api/object.ts";
import { keyText } from "../api/object_key.ts";
import {
  asBuffer,
  type ByteRange,
  NO_BYTES,
  NO_RANGE,
  parseRange,
  sameBytes,
  smallInteger,
  stringAt,
  stringEquals,
} from "./byte_range.ts";
import { BACKSLASH, bytesOf, JsonCursor } from "./json_cursor.ts";

/** Field of a header, which the scanner finds as a range of bytes. */
export type HeaderField =
  | "apiVersion"
  | "kind"
  | "status"
  | "metadata"
  | "name"
  | "namespace"
  | "uid"
  | "resourceVersion"
  | "generation"
  | "deletionTimestamp"
  | "finalizers"
  | "labels"
  | "annotations"
  | "ownerReferences"
  | "managedFields";

/** Header field whose value is a string. */
export type StringField =
  | "apiVersion"
  | "kind"
  | "name"
  | "namespace"
  | "uid"
  | "resourceVersion"
  | "deletionTimestamp";

/** Index of each field in {@linkcode ObjectHeader.ranges}. */
export const FIELD_INDEX: Readonly<Record<HeaderField, number>> = {
  apiVersion: 0,
  kind: 1,
  status: 2,
  metadata: 3,
  name: 4,
  namespace: 5,
  uid: 6,
  resourceVersion: 7,
  generation: 8,
  deletionTimestamp: 9,
  finalizers: 10,
  labels: 11,
  annotations: 12,
  ownerReferences: 13,
  managedFields: 14,
};
const FIELD_COUNT = 15;
const ZERO = 0x30;

/**
 * Index of a field. Callers mostly pass a constant: the compiler then resolves
 * this switch, but not a lookup in a table.
 */
function indexOf(field: HeaderField): number {
  switch (field) {
    case "name":
      return FIELD_INDEX.name;
    case "namespace":
      return FIELD_INDEX.namespace;
    case "uid":
      return FIELD_INDEX.uid;
    case "resourceVersion":
      return FIELD_INDEX.resourceVersion;
    case "apiVersion":
      return FIELD_INDEX.apiVersion;
    case "kind":
      return FIELD_INDEX.kind;
    default:
      return FIELD_INDEX[field];
  }
}

/** Entry of `cutStarts` for a missing member. */
export const NO_MEMBER = -1;
/**
 * Entry of `cutStarts` for the first member, or for a repeated key: do not cut.
 */
export const NO_CUT = -2;

const NOTHING: Readonly<Record<string, string>> = Object.freeze({});
const NONE: readonly never[] = Object.freeze([]);

/**
 * Identity and metadata of an object in an event. Fields are decoded when they are
 * read, and again each time.
 *
 * As in Kubernetes, `null` counts as absent, and an absent string reads as empty.
 * Reading a field that is not well-formed throws a `SyntaxError`.
 */
export interface EventHeader {
  /** API version of the object; empty if its watch or list leaves it out. */
  readonly apiVersion: string;
  /** Kind of the object; empty if its watch or list leaves it out. */
  readonly kind: string;
  /** Name, unique in the namespace. */
  readonly name: string;
  /** Namespace of the object; empty for cluster-scoped objects. */
  readonly namespace: string;
  /** UID of the object; distinguishes a recreated object from its predecessor. */
  readonly uid: string;
  /** resourceVersion of this state of the object. */
  readonly resourceVersion: string;
  /** Key of the object as text: `namespace/name`, or `name`. */
  readonly keyText: string;
  /** Generation of the desired state; undefined for kinds without it. */
  readonly generation: number | undefined;
  /** Deletion timestamp; undefined unless the object is being deleted. */
  readonly deletionTimestamp: string | undefined;
  /** Finalizers in their order; an empty list without any. */
  readonly finalizers: readonly string[];
  /** All labels; {@linkcode EventHeader.label} reads a single one. */
  readonly labels: Readonly<Record<string, string>>;
  /** All annotations; {@linkcode EventHeader.annotation} reads a single one. */
  readonly annotations: Readonly<Record<string, string>>;
  /** Owners in their order; an empty list without any. */
  readonly ownerReferences: readonly OwnerReference[];
  /**
   * Whether only the identity of the object is known: its name, namespace, UID,
   * resourceVersion and generation. All other fields read as absent.
   */
  readonly isPartial: boolean;
  /** Whether a finalizer is set; no other finalizer is decoded. */
  hasFinalizer(finalizer: string): boolean;
  /** Value of a label; no other label is decoded. */
  label(key: string): string | undefined;
  /** Value of an annotation; no other annotation is decoded. */
  annotation(key: string): string | undefined;
}

/**
 * Header of an object: its identity and metadata, as ranges of its bytes. Fields
 * are decoded when they are read, and again each time.
 *
 * A header is borrowed: it describes the object of the last step of its scanner
 * and is valid until the next step, or until its bytes change. To keep it, keep
 * decoded values or a {@linkcode ObjectHeader.copy}. Reading a field that is not
 * well-formed throws a `SyntaxError`.
 *
 * As in Kubernetes, `null` counts as absent, and an absent string reads as empty.
 * Of a repeated key the last one counts, as in `JSON.parse`.
 */
export class ObjectHeader implements ByteRange, EventHeader {
  /** Array that contains the object. */
  bytes: Uint8Array = NO_BYTES;
  /** Index of the opening brace of the object. */
  start = 0;
  /** Index after the closing brace of the object. */
  end = 0;
  /**
   * Start and end of each field, or -1; set by the scanner. The range of a string
   * includes its quotes.
   */
  readonly ranges: number[] = new Array<number>(2 * FIELD_COUNT).fill(-1);
  /**
   * End of the member before each field of the metadata, so that the field can be
   * cut out together with its comma; or {@linkcode NO_MEMBER} or
   * {@linkcode NO_CUT}.
   */
  readonly cutStarts: number[] = new Array<number>(FIELD_COUNT).fill(NO_MEMBER);

  /** Whether the object has `metadata` several times; the last one counts. */
  repeatsMetadata = false;
  /**
   * resourceVersion as a number, if that is exact and has no other spelling: a
   * decimal of at most 15 digits. Otherwise NaN, and the text decides.
   */
  versionNumber: number = NaN;
  /**
   * Whether only the identity of the object is known: its name, namespace, UID,
   * resourceVersion and generation. All other fields read as absent.
   */
  isPartial = false;

  #usedCursor: JsonCursor | undefined;
  /** Decoded resourceVersion and key, once they were read. */
  #version: string | undefined;
  #keyText: string | undefined;
  readonly #usedRange = { bytes: this.bytes, start: 0, end: 0 };

  get #cursor(): JsonCursor {
    return this.#usedCursor ??= new JsonCursor("the metadata of an object");
  }

  /** Starts the header of another object, without any fields. */
  begin(bytes: Uint8Array, start: number): void {
    this.bytes = bytes;
    this.start = start;
    this.forget(0);
    this.repeatsMetadata = false;
    this.#version = this.#keyText = undefined;
  }

  /** Forgets the bytes, so that they can be freed; the header is empty then. */
  release(): void {
    this.begin(NO_BYTES, 0);
    this.end = 0;
    this.#usedRange.bytes = NO_BYTES;
    this.#usedCursor?.reset(NO_RANGE);
  }

  /** Removes the fields from an index upwards; the metadata fields come last. */
  forget(index: number): void {
    const { ranges, cutStarts } = this;
    for (let i = 2 * index; i < ranges.length; i++) ranges[i] = -1;
    for (let i = index; i < cutStarts.length; i++) cutStarts[i] = NO_MEMBER;
  }

  /** Parses the resourceVersion, when the fields are complete. */
  parseVersion(): void {
    const { bytes, start, end } = this.string("resourceVersion");
    const isCanonical = end > start &&
      (bytes[start] !== ZERO || end === start + 1);
    this.versionNumber = isCanonical
      ? smallInteger(bytes, start, end) ?? NaN
      : NaN;
  }

  /** API version of the object; empty for items of a list, which leave it out. */
  get apiVersion(): string {
    return this.#string(FIELD_INDEX.apiVersion);
  }

  /** Kind of the object; empty for items of a list, which leave it out. */
  get kind(): string {
    return this.#string(FIELD_INDEX.kind);
  }

  /** Name of the object; empty for BOOKMARK events and Status objects. */
  get name(): string {
    return this.#string(FIELD_INDEX.name);
  }

  /** Namespace of the object; empty for cluster-scoped objects. */
  get namespace(): string {
    return this.#string(FIELD_INDEX.namespace);
  }

  /** UID of the object; distinguishes a recreated object from its predecessor. */
  get uid(): string {
    return this.#string(FIELD_INDEX.uid);
  }

  /** resourceVersion of this state of the object. */
  get resourceVersion(): string {
    return this.#version ??= this.#string(FIELD_INDEX.resourceVersion);
  }

  /** Key of the object as text: `namespace/name`, or `name`. */
  get keyText(): string {
    return this.#keyText ??= keyText(this);
  }

  /** Generation of the desired state; undefined for kinds without it. */
  get generation(): number | undefined {
    const at = 2 * FIELD_INDEX.generation;
    const start = this.ranges[at] as number;
    if (start < 0) return undefined;
    const { bytes } = this;
    const end = this.ranges[at + 1] as number;
    return smallInteger(bytes, start, end) ??
      parseRange({ bytes, start, end }) as number;
  }

  /** Deletion timestamp; undefined unless the object is being deleted. */
  get deletionTimestamp(): string | undefined {
    return this.has("deletionTimestamp")
      ? this.#string(FIELD_INDEX.deletionTimestamp)
      : undefined;
  }

  /** Finalizers in their order; an empty list without any. */
  get finalizers(): readonly string[] {
    return this.#value<readonly string[]>("finalizers") ?? NONE;
  }

  /** All labels; {@linkcode ObjectHeader.label} reads a single one. */
  get labels(): Readonly<Record<string, string>> {
    return this.#value<Record<string, string>>("labels") ?? NOTHING;
  }

  /** All annotations; {@linkcode ObjectHeader.annotation} reads a single one. */
  get annotations(): Readonly<Record<string, string>> {
    return this.#value<Record<string, string>>("annotations") ?? NOTHING;
  }

  /** Owners in their order; an empty list without any. */
  get ownerReferences(): readonly OwnerReference[] {
    return this.#value<readonly OwnerReference[]>("ownerReferences") ?? NONE;
  }

  /** Whether a field is present, without decoding it. */
  has(field: HeaderField): boolean {
    return (this.ranges[2 * indexOf(field)] as number) >= 0;
  }

  /** JSON of a field; undefined if it is absent or null. */
  range(field: HeaderField): ByteRange | undefined {
    const at = 2 * FIELD_INDEX[field];
    const start = this.ranges[at] as number;
    return start < 0
      ? undefined
      : { bytes: this.bytes, start, end: this.ranges[at + 1] as number };
  }

  /**
   * Bytes of a string field without its quotes, not decoded; empty if the field is
   * absent. The next call reuses the range.
   */
  string(field: StringField): ByteRange {
    const range = this.#rangeAt(indexOf(field));
    const isThere = range.start >= 0;
    range.start++;
    range.end = isThere ? range.end - 1 : 0;
    return range;
  }

  /** Whether a string field contains escapes, so that its bytes are not its text. */
  isEscaped(field: StringField): boolean {
    const { bytes, start, end } = this.string(field);
    for (let i = start; i < end; i++) if (bytes[i] === BACKSLASH) return true;
    return false;
  }

  /**
   * Whether a finalizer is set; no other finalizer is decoded.
   *
   * @throws {SyntaxError} If the finalizers are not well-formed.
   */
  hasFinalizer(finalizer: string): boolean {
    if (!this.has("finalizers")) return false;
    const cursor = this.#cursor;
    cursor.reset(this.#rangeAt(FIELD_INDEX.finalizers));
    let found = false;
    for (let more = cursor.enterArray(); more; more = cursor.nextElement()) {
      const start = cursor.position;
      cursor.skipValue();
      found ||= stringEquals(this.bytes, start, cursor.position, finalizer);
    }
    return found;
  }

  /**
   * Value of a label; no other label is decoded.
   *
   * @throws {SyntaxError} If the labels are not well-formed.
   */
  label(key: string): string | undefined {
    return this.#entry("labels", key);
  }

  /**
   * Value of an annotation; no other annotation is decoded.
   *
   * @throws {SyntaxError} If the annotations are not well-formed.
   */
  annotation(key: string): string | undefined {
    return this.#entry("annotations", key);
  }

  /** Header with a copy of the bytes, in the memory of a former copy if given. */
  copy(copy: ObjectHeader = new ObjectHeader()): ObjectHeader {
    const { bytes, start, end } = this;
    const length = end - start;
    const kept = copy.bytes.length < length
      ? Buffer.allocUnsafe(length)
      : copy.bytes;
    asBuffer(bytes).copy(kept, 0, start, end);
    copy.bytes = kept;
    copy.end = length;
    copy.repeatsMetadata = this.repeatsMetadata;
    copy.versionNumber = this.versionNumber;
    copy.isPartial = this.isPartial;
    copy.#version = this.#version;
    copy.#keyText = this.#keyText;
    for (let i = 0; i < this.ranges.length; i++) {
      const position = this.ranges[i] as number;
      copy.ranges[i] = position < 0 ? -1 : position - start;
    }
    for (let i = 0; i < FIELD_COUNT; i++) {
      const position = this.cutStarts[i] as number;
      copy.cutStarts[i] = position < 0 ? position : position - start;
    }
    return copy;
  }

  /** Range of a field, in an object that the next call reuses. */
  #rangeAt(index: number): { bytes: Uint8Array; start: number; end: number } {
    const range = this.#usedRange;
    range.bytes = this.bytes;
    range.start = this.ranges[2 * index] as number;
    range.end = this.ranges[2 * index + 1] as number;
    return range;
  }

  #string(index: number): string {
    const start = this.ranges[2 * index] as number;
    return start < 0
      ? ""
      : stringAt(this.bytes, start, this.ranges[2 * index + 1] as number);
  }

  #value<V>(field: HeaderField): V | undefined {
    const range = this.range(field);
    return range === undefined ? undefined : parseRange(range) as V;
  }

  #entry(field: "labels" | "annotations", key: string): string | undefined {
    if (!this.has(field)) return undefined;
    const cursor = this.#cursor;
    cursor.reset(this.#rangeAt(FIELD_INDEX[field]));
    const { bytes } = this;
    let start = -1;
    let end = -1;
    for (let more = cursor.enterObject(); more; more = cursor.nextMember()) {
      const matches = cursor.stringEquals(key);
      const from = cursor.position;
      cursor.skipValue();
      if (!matches) continue;
      start = from;
      end = cursor.position;
    }
    return start < 0 ? undefined : parseRange({ bytes, start, end }) as string;
  }
}

const QUOTE = 0x22;
const NINE = 0x39;

/**
 * Whether two states of an object have the same metadata except `resourceVersion`
 * and `managedFields`. Comparing their bytes takes a fraction of the time of a
 * scan, and suffices, as a server writes unchanged fields as it did before.
 *
 * @param header Header of one state.
 * @param other JSON of the other state, with `metadata` only once and without
 * `managedFields`.
 * @returns True if they are certainly the same; false means unknown.
 */
export function hasSameMetadata(
  header: ObjectHeader,
  other: ByteRange,
): boolean {
  const { ranges, start } = header;
  const end = endOf(ranges, "metadata");
  const version = ranges[2 * FIELD_INDEX.resourceVersion] as number;
  const versionEnd = endOf(ranges, "resourceVersion");
  let cut = header.cutStarts[FIELD_INDEX.managedFields] as number;
  let cutEnd = endOf(ranges, "managedFields");
  if (cut === NO_MEMBER) cut = cutEnd = end;
  if (cut === NO_CUT || cutEnd < 0 || version < start) return false;
  // Built-in kinds have the version before the managed fields, others after them.
  const inOrder = version < cut;
  const first = inOrder ? version : cut;
  const firstEnd = inOrder ? versionEnd : cutEnd;
  const second = inOrder ? cut : version;
  const secondEnd = inOrder ? cutEnd : versionEnd;
  const length = versionEnd - version;
  const otherFirst = other.start + first - start;
  const afterFirst = otherFirst + (inOrder ? length : 0);
  const otherSecond = afterFirst + second - firstEnd;
  const afterSecond = otherSecond + (inOrder ? 0 : length);
  const otherVersion = inOrder ? otherFirst : otherSecond;
  if (afterSecond + end - secondEnd > other.end) return false;
  const bytes = asBuffer(header.bytes);
  const others = asBuffer(other.bytes);
  // If the bytes before the version are the same, so is its position; as it is a
  // string of digits in both, the bytes after it have the same meaning.
  return isNumber(others, otherVersion, otherVersion + length) &&
    sameBytes(bytes, start, first, others, other.start) &&
    sameBytes(bytes, firstEnd, second, others, afterFirst) &&
    sameBytes(bytes, secondEnd, end, others, afterSecond);
}

/** Bytes of the status key, from the comma before it to its colon. */
const STATUS_KEY = asBuffer(bytesOf(',"status":'));

/**
 * Whether the bytes of two states of an object are the same except for their
 * status, `resourceVersion` and `managedFields`.
 *
 * @param header Header of one state, with a status.
 * @param other Header of the other state, without `managedFields`.
 * @returns True if they are certainly the same; false means unknown.
 */
export function differInStatus(
  header: ObjectHeader,
  other: ObjectHeader,
): boolean {
  const status = header.range("status");
  // The bytes up to the end of the metadata are the same: so are their members.
  if (
    status === undefined || other.repeatsMetadata ||
    !hasSameMetadata(header, other)
  ) return false;
  const metadataEnd = endOf(header.ranges, "metadata");
  const otherMetadataEnd = endOf(other.ranges, "metadata");
  const bytes = asBuffer(header.bytes);
  const others = asBuffer(other.bytes);
  const otherStatus = other.range("status");
  const isSame = (start: number, end: number, from: number, to: number) =>
    end - start === to - from && sameBytes(bytes, start, end, others, from);
  if (otherStatus !== undefined) {
    return isSame(
      metadataEnd,
      status.start,
      otherMetadataEnd,
      otherStatus.start,
    ) && isSame(status.end, header.end, otherStatus.end, other.end);
  }
  const keyStart = status.start - STATUS_KEY.length;
  return sameBytes(bytes, keyStart, status.start, STATUS_KEY, 0) &&
    isSame(metadataEnd, keyStart, otherMetadataEnd, other.end - 1) &&
    isSame(status.end, header.end, other.end - 1, other.end);
}

function endOf(
  ranges: readonly number[],
  field: keyof typeof FIELD_INDEX,
): number {
  return ranges[2 * FIELD_INDEX[field] + 1] as number;
}

/** Whether a range is a JSON string of digits. */
function isNumber(bytes: Uint8Array, start: number, end: number): boolean {
  if (bytes[start] !== QUOTE || bytes[end - 1] !== QUOTE) return false;
  for (let i = start + 1; i < end - 1; i++) {
    const byte = bytes[i] as number;
    if (byte < ZERO || byte > NINE) return false;
  }
  return true;
}
