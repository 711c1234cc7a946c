import type { OwnerReference } from "../api/object.ts";
import type { ByteRange } from "./byte_range.ts";

/** What the scanner finds of an object, each as a range of bytes. */
export type HeaderField =
  | "apiVersion"
  | "kind"
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

/**
 * The identity and metadata of one object, found on its bytes. Nothing is
 * decoded until it is read, and a value is decoded anew each time.
 *
 * A header is reused: it describes the object of its scanner's last step and is
 * valid until the next one, or until the bytes beneath change. Who keeps
 * something keeps the decoded value, or a {@linkcode ObjectHeader.copy}.
 *
 * As in Kubernetes' own decoding, `null` counts as absent, and an absent string
 * reads as empty. Of a repeated key the last one counts, as in `JSON.parse`.
 */
export declare class ObjectHeader implements ByteRange {
  /** The array in which the object lies. */
  readonly bytes: Uint8Array;
  /** Where the object starts: its opening brace. */
  readonly start: number;
  /** Where the object ends: after its closing brace. */
  readonly end: number;

  /** The object's `apiVersion`; empty for items of a list, which leave it out. */
  get apiVersion(): string;
  /** The object's `kind`; empty for items of a list, which leave it out. */
  get kind(): string;
  /** The name; empty for BOOKMARK events and Status objects. */
  get name(): string;
  /** The namespace; empty for cluster-scoped objects. */
  get namespace(): string;
  get uid(): string;
  get resourceVersion(): string;
  /** Counts changes of the desired state; undefined for kinds without it. */
  get generation(): number | undefined;
  /** Set when the object is about to be deleted. */
  get deletionTimestamp(): string | undefined;
  get finalizers(): readonly string[];
  get labels(): Readonly<Record<string, string>>;
  get annotations(): Readonly<Record<string, string>>;
  get ownerReferences(): readonly OwnerReference[];

  /** Whether a field is there, without decoding it. */
  has(field: HeaderField): boolean;
  /** The JSON text of a field, or undefined if it is absent or null. */
  range(field: HeaderField): ByteRange | undefined;
  /** Whether a finalizer is set, decided on the bytes. */
  hasFinalizer(finalizer: string): boolean;
  /** The value of one label, without decoding the others. */
  label(key: string): string | undefined;
  /** The value of one annotation, without decoding the others. */
  annotation(key: string): string | undefined;
  /** A header of its own, on a copy of the bytes, that stays valid. */
  copy(): ObjectHeader;
}
