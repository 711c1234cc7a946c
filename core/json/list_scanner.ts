import type { ObjectHeader } from "./object_header.ts";

/** What a list says beside its items. */
export interface ListHeader {
  /** Such as `v1`; empty if the list does not say it. */
  readonly apiVersion: string;
  /** Such as `PodList`; `Status` if the server answered with an error. */
  readonly kind: string;
  /** The state of the server that the list shows; where a watch begins. */
  readonly resourceVersion: string;
  /** The token of the next page; empty on the last one. */
  readonly continue: string;
  /** How many items follow on later pages, where the server tells. */
  readonly remainingItemCount: number | undefined;
  /** How many items this page had. */
  readonly itemCount: number;
}

/** Options of {@linkcode ListScanner}. */
export interface ListScannerOptions {
  /**
   * The longest item, and the longest part between items, in bytes.
   *
   * @default {8388608}
   */
  readonly maxItemBytes?: number | undefined;
}

/**
 * Reads one page of a list while it arrives: each item is found on the bytes
 * and given as soon as it is complete, so that a page of any size never becomes
 * one text or one object. `metadata` may stand before or after the items.
 *
 * @example Items of a page
 * ```ts
 * import { ListScanner, wholeRange } from "@coracle/operator/core";
 *
 * const scanner = new ListScanner();
 * const names: string[] = [];
 * const page = '{"items":[{"metadata":{"name":"web"}}],"metadata":{"resourceVersion":"7"}}';
 * scanner.push(wholeRange(page).bytes);
 * while (scanner.next()) names.push(scanner.header.name);
 * const { resourceVersion } = scanner.finish();
 * if (names.join() !== "web" || resourceVersion !== "7") throw new Error();
 * ```
 */
export declare class ListScanner {
  constructor(options?: ListScannerOptions);

  /** The header of the current item. */
  readonly header: ObjectHeader;

  /**
   * Takes the next chunk, which must stay as it is until its items are read.
   *
   * @throws {Error} If items of the chunk before were not read.
   */
  push(chunk: Uint8Array): void;

  /**
   * Moves to the next item.
   *
   * @returns Whether there is one; if not, push the next chunk.
   * @throws {SyntaxError} If the bytes are not a list.
   * @throws {TooLongError} If an item is longer than the limit.
   */
  next(): boolean;

  /**
   * Tells that the page has ended.
   *
   * @throws {SyntaxError} If the page is not complete: an item must not be
   * taken for the last one because a connection broke.
   */
  finish(): ListHeader;
}
