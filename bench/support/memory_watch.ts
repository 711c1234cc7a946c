import { Buffer } from "node:buffer";
import { PodFactory } from "./pods.ts";

/** About what one record of TLS and one write of a real server hold. */
const CHUNK_BYTES = 64 * 1024;
/** The version of the state; changes count on from there. */
const VERSION = 1_000_000;

/** What a {@linkcode MemoryWatch} holds. */
export interface MemoryWatchOptions {
  /** How many Pods there are. */
  readonly objects: number;
  /** How many changes of them there are. */
  readonly events: number;
  /**
   * Each so many changes of a Pod raise its generation, as a change of its
   * spec does; the others change its status only.
   */
  readonly generationEvery: number;
}

/** A list of Pods and the changes that follow it, as bytes in memory. */
export class MemoryWatch {
  readonly options: MemoryWatchOptions;
  /** The answer to a list. */
  readonly list: Buffer;
  readonly #events: readonly Buffer[];
  readonly #pods: PodFactory = new PodFactory();

  /** @param options What it holds; all of it is made at once. */
  constructor(options: MemoryWatchOptions) {
    this.options = options;
    const items = Array.from({ length: options.objects }, (_, index) => {
      const text = this.#pods.text(index, index + 1);
      const { kind: _kind, apiVersion: _version, ...pod } = JSON.parse(text);
      return this.#withGeneration(JSON.stringify(pod), index, 0);
    });
    const metadata = { resourceVersion: String(VERSION) };
    const head = { kind: "PodList", apiVersion: "v1", metadata, items: [] };
    this.list = Buffer.from(
      `${JSON.stringify(head).slice(0, -2)}${items.join()}]}`,
    );
    this.#events = Array.from(
      { length: options.events },
      (_, index) => this.#event(index),
    );
  }

  /** The version of the last change of some. */
  version(events: number): string {
    return String(VERSION + events);
  }

  /** The Pod that a change is about. */
  key(event: number): { readonly namespace: string; readonly name: string } {
    const text = this.#pods.text(this.#object(event));
    const { namespace, name } = JSON.parse(text).metadata;
    return { namespace, name };
  }

  /** Some changes as chunks of a stream, which break where they happen to. */
  *chunks(from: number, to: number): Generator<Buffer, void, undefined> {
    const bytes = Buffer.concat(this.#events.slice(from, to));
    for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
      yield bytes.subarray(start, start + CHUNK_BYTES);
    }
  }

  /** Objects change in no order: neighbours in time are not those in a list. */
  #object(event: number): number {
    const { objects } = this.options;
    return event * 7919 % objects;
  }

  #event(index: number): Buffer {
    const object = this.#object(index);
    const pod = this.#withGeneration(
      this.#pods.text(object, VERSION + 1 + index),
      object,
      1 + Math.floor(index / this.options.objects),
    );
    return Buffer.from(`{"type":"MODIFIED","object":${pod}}\n`);
  }

  /** Not all objects have the changes that raise it at the same time. */
  #withGeneration(pod: string, object: number, changes: number): string {
    const { generationEvery } = this.options;
    const generation = 1 + Math.floor((object + changes) / generationEvery);
    return pod.replace('"metadata":{', `$&"generation":${generation},`);
  }
}
