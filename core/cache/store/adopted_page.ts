import type { ByteRange } from "../../json/byte_range.ts";
import type { StoredPage } from "./tiers.ts";

/** Object of an adopted page. */
export interface PageEntry {
  /** Number of its body in the page. */
  readonly ordinal: number;
  readonly namespace: ByteRange;
  readonly name: ByteRange;
  /** UID: the four words of a UUID, or a text. */
  readonly uid: Uint32Array | string;
  /** resourceVersion: a number of at most 15 digits, or a text. */
  readonly version: number | string;
  readonly generation: number;
  /** Its values by the definitions of the page; undefined where not known. */
  readonly values: readonly (readonly string[] | undefined)[];
}

/** Page of bodies that a store can take over. */
export interface AdoptedPage {
  readonly page: StoredPage;
  /** Definitions, as JSON, of the indexes whose values are known. */
  readonly definitions: readonly string[];
  /** Objects in the order of their bodies, each valid until the next one. */
  readonly entries: { next(): PageEntry | undefined };
}
